/* SPDX-License-Identifier: Apache-2.0 */
/* Hears that another process has changed the store. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct err;
struct change_watch;

/*
 * Connecting takes its time: not on a loop. A file is watched from outside, none of it is opened. Of a server, what is meant
 * for another engine than 'node' is not heard.
 */
bool change_watch_open(const char *where, const char *node, struct change_watch **ret, struct err *e);
void change_watch_free(struct change_watch *w);
AUTO_DEFINE(change_watch);

int change_watch_fd(const struct change_watch *w); /* readable: take what is there */
/* *ret: somebody changed something; perhaps we did. False: it hears nothing any more, open another. */
bool change_watch_take(struct change_watch *w, bool *ret, struct err *e);
