/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as RFC 3339 timestamps. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;

bool rfc3339_parse(const char *s, usec_t *ret, struct err *e); /* with an offset from UTC; or @EPOCH[.FRACTION] */

#define RFC3339_MAX 40
char *rfc3339_format(usec_t t, char out[RFC3339_MAX]); /* 2026-11-16T02:41:11Z, with a fraction only if it is not 0 */
