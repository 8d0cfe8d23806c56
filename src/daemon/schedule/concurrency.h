/* SPDX-License-Identifier: Apache-2.0 */
/* Decides while there is work how much of it goes at a time: on this node, and of one owner. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/decide/capacity.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dispatcher;
struct concurrency;

struct concurrency_rules {       /* config keys of the same names */
	int64_t max_running;        /* 0: follows the machine */
	int64_t owner_max_running;  /* 0: none; below 0: so many percent of the node */
};

struct concurrency *concurrency_new(const struct clock *clock /* borrowed */, struct dispatcher *d /* borrowed */,
	const struct concurrency_rules *rules);
void concurrency_free(struct concurrency *g);
AUTO_DEFINE(concurrency);
void concurrency_set_rules(struct concurrency *g, const struct concurrency_rules *rules); /* after a reload */

/* Before each look for due runs. Returns in how many microseconds to look again though nothing happened; USEC_NEVER: not. */
usec_t concurrency_pump(struct concurrency *g);

struct concurrency_view {
	size_t max_running, owner_max; /* owner_max 0: none */
	enum capacity_why why;
	struct machine_figures machine;    /* as last read, which is when there last was work */
};
void concurrency_get_view(const struct concurrency *g, struct concurrency_view *ret);
/* For conditions ('when'): figures as of now. */
const struct machine_figures *concurrency_machine(struct concurrency *g);
