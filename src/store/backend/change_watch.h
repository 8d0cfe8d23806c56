/* SPDX-License-Identifier: Apache-2.0 */
/* Detects changes made to the store by other processes. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct err;
struct change_watch;

/*
 * Watches the directory of a SQLite file without opening the file, or listens for notifications of
 * a PostgreSQL server. Notifications for another node than 'node' are ignored. Connecting blocks,
 * so this must not be called on the loop thread.
 */
bool change_watch_open(const char *where, const char *node, struct change_watch **ret, struct err *e);
void change_watch_free(struct change_watch *w);
AUTO_DEFINE(change_watch);

int change_watch_fd(const struct change_watch *w); /* readable: call change_watch_take() */
/*
 * Sets *ret if the store was changed, possibly by this process. False: the watch has failed, open a
 * new one.
 */
bool change_watch_take(struct change_watch *w, bool *ret, struct err *e);
