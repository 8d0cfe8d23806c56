/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the user that the daemon does not respond. */
#pragma once
#include <stdbool.h>

struct ctl;
struct err;

/*
 * Called before and after a request. A message is printed once if the answer takes longer than
 * three seconds.
 */
void unresponsive_watch(struct ctl *c);
void unresponsive_watch_end(struct ctl *c);

/* Replaces the message of a request that timed out: names the process, its state and what to do. */
bool unresponsive_explain(const struct ctl *c, struct err *e);
