/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the verbs of 'jobctl db'. */
#pragma once
#include <stdbool.h>

struct args;
struct ctl;

/* A dangerous verb asks at a terminal and needs --yes elsewhere. Returns an exit code when it may not go on, else -1. */
int verb_db_confirm(const struct args *a, const char *verb, const char *question);
bool verb_db_is_system(const struct ctl *c); /* connected to the daemon of the system, not of a user */
