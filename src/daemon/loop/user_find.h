/* SPDX-License-Identifier: Apache-2.0 */
/* Users by their names. These ask the user database, which may take long: never on the loop. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

bool user_lookup_uid(const char *name, uint32_t *ret_uid, struct err *e);

/* The number as an owner (core/job/owner.h) of a user by name, or of the number itself; also of one who is gone. */
bool user_lookup_owner(struct store *s, const char *ref, int64_t *ret, struct err *e);
