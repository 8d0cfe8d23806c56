/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up users in the user database. */
#pragma once
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct user;

/*
 * May block for a long time. START_TRANSIENT: the database did not answer, so it is unknown whether
 * the user exists.
 */
bool user_lookup(uid_t uid, struct user *ret, enum start_failure *why, struct err *e);
/* Of this process; without an entry, its name is the uid in digits. */
void user_lookup_self(struct user *ret);
