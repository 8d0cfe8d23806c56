/* SPDX-License-Identifier: Apache-2.0 */
/* How the files of why.h put a reason together. */
#pragma once
#include "core/why.h"

void why_say(struct why_reason *r, enum why_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void why_type(struct why_reason *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
