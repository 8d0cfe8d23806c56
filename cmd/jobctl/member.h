/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects in the daemon's answers. */
#pragma once
#include "base/clock.h"
#include <jansson.h>
#include <stdint.h>

/* A member that is absent or has another type is 0 or NULL. */
int64_t member_int(const json_t *o, const char *key);
const char *member_text(const json_t *o, const char *key); /* owned by the object */
usec_t member_time(const json_t *o, const char *key);      /* of an RFC 3339 text */
