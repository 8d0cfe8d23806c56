/* SPDX-License-Identifier: Apache-2.0 */
/* The machine is looked at when something is due, and while due work has no room; an idle daemon does not look. */
#include "daemon/schedule/concurrency.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/machine_load.h"

#define SECOND_MIN (USEC_SEC / 2) /* ends are counted over at least so long */

struct governor {
	const struct clock *clock;
	struct dispatcher *dispatcher;
	struct governor_rules rules;
	struct machine machine;
	struct capacity capacity;
	usec_t counted_at;       /* CLOCK_BOOTTIME */
	uint64_t ended;          /* the dispatcher's count then */
	int64_t ended_rate;      /* a second */
	bool was_short;          /* it has been said that memory or disks are short */
};

static size_t owner_max(const struct governor *g)
{
	size_t share;

	if (g->rules.owner_max_running >= 0)
		return (size_t)g->rules.owner_max_running;
	share = g->capacity.limit * (size_t)-g->rules.owner_max_running / 100;
	return share ? share : 1;
}

static void tell_dispatcher(struct governor *g)
{
	dispatcher_set_max_running(g->dispatcher, g->capacity.limit);
	dispatcher_set_owner_max(g->dispatcher, owner_max(g));
}

void governor_set(struct governor *g, const struct governor_rules *rules)
{
	bool follows = rules->max_running == 0;

	if (!follows)
		capacity_pin(&g->capacity, (size_t)rules->max_running);
	else if (g->capacity.why == CAPACITY_PINNED)
		capacity_init(&g->capacity, machine_cores(), CAPACITY_CEILING);
	g->rules = *rules;
	tell_dispatcher(g);
}

struct governor *governor_new(const struct clock *clock, struct dispatcher *d, const struct governor_rules *rules)
{
	struct governor *g = xcalloc(1, sizeof(*g));

	g->clock = clock;
	g->dispatcher = d;
	g->machine.now = MACHINE_UNKNOWN;
	governor_set(g, rules); /* from all zero, which is pinned */
	return g;
}

void governor_free(struct governor *g)
{
	free(g);
}

static void count_ends(struct governor *g, uint64_t ended, usec_t boottime)
{
	usec_t passed = boottime - g->counted_at;

	if (g->counted_at && passed < SECOND_MIN)
		return;
	g->ended_rate = g->counted_at ? (int64_t)((double)(ended - g->ended) * USEC_SEC / (double)passed) : 0;
	g->counted_at = boottime;
	g->ended = ended;
}

static void say(struct governor *g)
{
	bool is_short = g->capacity.why >= CAPACITY_IO;

	if (is_short != g->was_short)
		log_info("%zu runs at a time now: %s", g->capacity.limit, capacity_why_words(g->capacity.why));
	g->was_short = is_short;
}

usec_t governor_pump(struct governor *g)
{
	struct dispatcher_counts c = {};
	struct capacity_view v;
	usec_t again;

	dispatcher_counts(g->dispatcher, &c);
	if (!c.due)
		return USEC_NEVER;
	v = (struct capacity_view){.now = clock_boot(g->clock), .in_flight = c.in_flight, .waiting = c.room == 0};
	v.machine = *machine_look(&g->machine, v.now);
	dispatcher_machine_is(g->dispatcher, &v.machine);
	count_ends(g, c.ended, v.now);
	v.ended = g->ended_rate;
	if (capacity_step(&g->capacity, &v)) {
		tell_dispatcher(g);
		say(g);
		dispatcher_counts(g->dispatcher, &c);
	}
	if (c.room > 0)
		return USEC_NEVER; /* it will be claimed for at once */
	again = capacity_again(&g->capacity, v.now);
	return again == USEC_NEVER ? USEC_NEVER : again - v.now;
}

void governor_look(const struct governor *g, struct governor_view *ret)
{
	*ret = (struct governor_view){.max_running = g->capacity.limit, .owner_max = owner_max(g), .why = g->capacity.why,
		.machine = g->machine.now};
}

const struct machine_now *governor_machine(struct governor *g)
{
	return machine_look(&g->machine, clock_boot(g->clock));
}
