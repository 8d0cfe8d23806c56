/* SPDX-License-Identifier: Apache-2.0 */
/* Adjusts the number of concurrent runs of this node. */
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
	int64_t max_running;        /* 0: auto, adjusted to the load of the machine */
	int64_t owner_max_running;  /* 0: no limit; below 0: percent of the limit of the node */
};

struct concurrency *concurrency_new(const struct clock *clock /* borrowed */,
	struct dispatcher *d /* borrowed */, const struct concurrency_rules *rules);
void concurrency_free(struct concurrency *g);
AUTO_DEFINE(concurrency);
/* Applies new rules after a reload. */
void concurrency_set_rules(struct concurrency *g, const struct concurrency_rules *rules);

/*
 * Call it before dispatcher_pump(). Returns after how many microseconds to call again; USEC_NEVER:
 * after the next event.
 */
usec_t concurrency_pump(struct concurrency *g);

struct concurrency_view {
	size_t max_running, owner_max; /* owner_max 0: no limit */
	enum capacity_why why;
	struct machine_figures machine;    /* as last read, when a run was due */
};
void concurrency_get_view(const struct concurrency *g, struct concurrency_view *ret);
/* Current figures (at most one second old), for conditions ('when'). */
const struct machine_figures *concurrency_machine(struct concurrency *g);
