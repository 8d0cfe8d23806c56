/* SPDX-License-Identifier: Apache-2.0 */
/* How many runs the machine takes at a time: a limit that follows what waits and how the machine copes. */
#pragma once
#include "base/clock.h"
#include "core/decide/machine_conditions.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum capacity_why {
	CAPACITY_PINNED,   /* somebody said so */
	CAPACITY_START,    /* what a machine with so many cores begins with */
	CAPACITY_RAISED,   /* work was waiting and the machine was not under pressure */
	CAPACITY_CPU,      /* lowered: tasks wait for a processor */
	CAPACITY_LOAD,     /* lowered: the load average, where there is no figure of pressure */
	CAPACITY_IO,       /* lowered: tasks wait for the disk */
	CAPACITY_MEMORY,   /* lowered: tasks wait for memory */
	CAPACITY_WHY_MAX
};
const char *capacity_why_words(enum capacity_why w); /* "raised, as work waits": half a sentence for people */

#define CAPACITY_CEILING 512

struct capacity {
	size_t limit;
	enum capacity_why why;
	usec_t moved_at;   /* when the limit changed last, by the clock of the views */
	usec_t lowered_at; /* when it last went down; 0: never */
	usec_t pressed_at; /* when the machine was last under pressure; 0: never */
	size_t start, ceiling;
	int64_t cores;
};

/* What is seen at one moment. */
struct capacity_view {
	usec_t now;        /* of a clock that does not jump */
	struct machine_figures machine;
	size_t in_flight;
	bool waiting;      /* more is due than has room */
	int64_t ended;     /* runs that ended in the last second */
};

void capacity_init(struct capacity *c, int64_t cores, size_t ceiling);
void capacity_pin(struct capacity *c, size_t limit);
/* Moves the limit if it should; true when it has. */
bool capacity_step(struct capacity *c, const struct capacity_view *v);
/* When to step again while work waits, always after 'now'; USEC_NEVER: the limit can go no higher. */
usec_t capacity_again(const struct capacity *c, usec_t now);
