/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that build a reason; private to the why files. */
#pragma once
#include "core/decide/why.h"

void why_say(struct why_reason *r, enum why_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Explains a refusal of the spawner; false: 'reason' is none, and *ret is unchanged. */
bool why_denied(enum why_code code, const char *reason, const char *owner, const char *ref, struct why_reason *ret);
void why_type(struct why_reason *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
