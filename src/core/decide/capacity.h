/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive limit on the number of concurrent runs of a node. */
#pragma once
#include "base/clock.h"
#include "core/decide/machine_conditions.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum capacity_why {
	CAPACITY_PINNED,   /* set by the configuration */
	CAPACITY_START,    /* initial value, from the number of cores */
	CAPACITY_RAISED,   /* runs were waiting and there was no pressure */
	CAPACITY_CPU,      /* lowered: CPU pressure */
	CAPACITY_LOAD,     /* lowered: load average, if CPU pressure is not available */
	CAPACITY_IO,       /* lowered: I/O pressure */
	CAPACITY_MEMORY,   /* lowered: memory pressure */
	CAPACITY_WHY_MAX
};
const char *capacity_why_words(enum capacity_why w); /* a phrase for users: "raised, as work was waiting" */

#define CAPACITY_CEILING 512

struct capacity {
	size_t limit;
	enum capacity_why why;
	usec_t moved_at;   /* time of the last change, on the clock of capacity_view */
	usec_t lowered_at; /* time of the last decrease; 0: never */
	usec_t pressed_at; /* last time with pressure; 0: never */
	size_t start, ceiling;
	int64_t cores;
};

/* The input of one step. */
struct capacity_view {
	usec_t now;        /* on a clock that does not step */
	struct machine_figures machine;
	size_t in_flight;
	bool waiting;      /* due runs wait because the limit is reached */
	int64_t ended;     /* runs that ended within the last second */
};

void capacity_init(struct capacity *c, int64_t cores, size_t ceiling);
void capacity_pin(struct capacity *c, size_t limit);
/* Adjusts the limit; true if it changed. */
bool capacity_step(struct capacity *c, const struct capacity_view *v);
/*
 * When to step again while runs wait, always after 'now'; USEC_NEVER: the limit is at its maximum.
 */
usec_t capacity_again(const struct capacity *c, usec_t now);
