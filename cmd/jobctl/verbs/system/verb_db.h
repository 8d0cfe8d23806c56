/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the verbs of 'jobctl db'. */
#pragma once
#include <stdbool.h>

struct args;
struct ctl;

/*
 * Asks before a destructive verb; without a terminal --yes is required. Returns -1 to continue,
 * else the exit code.
 */
int verb_db_confirm(const struct args *a, const char *verb, const char *question);
bool verb_db_is_system(const struct ctl *c); /* connected to the system's daemon, not to a user's */
