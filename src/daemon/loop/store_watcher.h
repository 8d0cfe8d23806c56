/* SPDX-License-Identifier: Apache-2.0 */
/* Thread that reports changes of the store by other nodes to the loop. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct clock;
struct err;
struct sd_event;
struct store_watcher;

/* on_news: called on the loop, also every 10 s without a notification. */
bool store_watcher_new(struct sd_event *ev, const struct clock *clock, const char *where,
	const char *node /* borrowed */, void (*on_news)(void *arg), void *arg,
	struct store_watcher **ret, struct err *e);
void store_watcher_free(struct store_watcher *w);
AUTO_DEFINE(store_watcher);
