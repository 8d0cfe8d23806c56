/* SPDX-License-Identifier: Apache-2.0 */
/* How the files of why.h put a reason together. */
#pragma once
#include "core/decide/why.h"

void why_say(struct why_reason *r, enum why_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A reason that is a refusal of the spawner, about the owner; false: it is none, and nothing was said. */
bool why_denied(enum why_code code, const char *reason, const char *owner, const char *ref, struct why_reason *ret);
void why_type(struct why_reason *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
