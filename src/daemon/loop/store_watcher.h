/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that hears when other nodes have changed the store, and tells the loop. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct clock;
struct err;
struct sd_event;
struct store_watcher;

/* on_news: on the loop; also now and then without any, in case one was not heard. */
bool store_watcher_new(struct sd_event *ev, const struct clock *clock, const char *where, const char *node /* borrowed */, void (*on_news)(void *arg), void *arg,
	struct store_watcher **ret, struct err *e);
void store_watcher_free(struct store_watcher *w);
AUTO_DEFINE(store_watcher);
