/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the limits of the dispatcher by the measured load while runs are due. */
#include "daemon/schedule/concurrency.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/machine_load.h"

#define RATE_INTERVAL_MIN (USEC_SEC / 2) /* the rate of ends is measured over at least this long */

struct concurrency {
	const struct clock *clock;
	struct dispatcher *dispatcher;
	struct concurrency_rules rules;
	struct machine_load machine;
	struct capacity capacity;
	usec_t counted_at;       /* CLOCK_BOOTTIME */
	uint64_t ended;          /* the count of the dispatcher at counted_at */
	int64_t ended_rate;      /* runs per second */
	bool was_short;          /* the shortage of memory or disk throughput was logged */
};

static size_t owner_max(const struct concurrency *g)
{
	size_t share;

	if (g->rules.owner_max_running >= 0)
		return (size_t)g->rules.owner_max_running;
	share = g->capacity.limit * (size_t)-g->rules.owner_max_running / 100;
	return share ? share : 1;
}

static void apply_limits(struct concurrency *g)
{
	dispatcher_set_max_running(g->dispatcher, g->capacity.limit);
	dispatcher_set_owner_max(g->dispatcher, owner_max(g));
}

void concurrency_set_rules(struct concurrency *g, const struct concurrency_rules *rules)
{
	bool follows = rules->max_running == 0;

	if (!follows)
		capacity_pin(&g->capacity, (size_t)rules->max_running);
	else if (g->capacity.why == CAPACITY_PINNED)
		capacity_init(&g->capacity, machine_load_cores(), CAPACITY_CEILING);
	g->rules = *rules;
	apply_limits(g);
}

struct concurrency *concurrency_new(const struct clock *clock, struct dispatcher *d,
	const struct concurrency_rules *rules)
{
	struct concurrency *g = xcalloc(1, sizeof(*g));

	g->clock = clock;
	g->dispatcher = d;
	g->machine.now = MACHINE_UNKNOWN;
	concurrency_set_rules(g, rules); /* an all-zero capacity counts as pinned */
	return g;
}

void concurrency_free(struct concurrency *g)
{
	free(g);
}

static void count_ends(struct concurrency *g, uint64_t ended, usec_t boottime)
{
	usec_t passed = boottime - g->counted_at;

	if (g->counted_at && passed < RATE_INTERVAL_MIN)
		return;
	g->ended_rate = g->counted_at
				? (int64_t)((double)(ended - g->ended) * USEC_SEC / (double)passed)
				: 0;
	g->counted_at = boottime;
	g->ended = ended;
}

static void log_limit(struct concurrency *g)
{
	bool is_short = g->capacity.why >= CAPACITY_IO;

	if (is_short != g->was_short)
		log_info("now at most %zu runs at a time: %s", g->capacity.limit,
			capacity_why_words(g->capacity.why));
	g->was_short = is_short;
}

usec_t concurrency_pump(struct concurrency *g)
{
	struct dispatcher_counts c = {};
	struct capacity_view v;
	usec_t again;

	dispatcher_counts(g->dispatcher, &c);
	if (!c.due)
		return USEC_NEVER;
	v = (struct capacity_view){
		.now = clock_boot(g->clock), .in_flight = c.in_flight, .waiting = c.room == 0};
	v.machine = *machine_load_read(&g->machine, v.now);
	dispatcher_set_machine(g->dispatcher, &v.machine);
	count_ends(g, c.ended, v.now);
	v.ended = g->ended_rate;
	if (capacity_step(&g->capacity, &v)) {
		apply_limits(g);
		log_limit(g);
		dispatcher_counts(g->dispatcher, &c);
	}
	if (c.room > 0)
		return USEC_NEVER; /* the dispatcher claims now, so no timer is needed */
	again = capacity_again(&g->capacity, v.now);
	return again == USEC_NEVER ? USEC_NEVER : again - v.now;
}

void concurrency_get_view(const struct concurrency *g, struct concurrency_view *ret)
{
	*ret = (struct concurrency_view){.max_running = g->capacity.limit, .owner_max = owner_max(g), .why = g->capacity.why,
		.machine = g->machine.now};
}

const struct machine_figures *concurrency_machine(struct concurrency *g)
{
	return machine_load_read(&g->machine, clock_boot(g->clock));
}
