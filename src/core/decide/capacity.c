/* SPDX-License-Identifier: Apache-2.0 */
/* Raises the limit while runs wait, lowers it under pressure. */
#include "core/decide/capacity.h"

#define RAISE_INTERVAL (250 * USEC_MSEC) /* minimum time between two increases ... */
#define RAISE_INTERVAL_PRESSED (3 * USEC_SEC)  /* ... after recent pressure */
#define LOWER_INTERVAL (5 * USEC_SEC)    /* minimum time between two decreases: the figures are averages over ten seconds */
#define PRESSURE_REST (15 * USEC_SEC)         /* time without pressure before an increase */
#define PRESSURE_FORGET (2 * USEC_MIN)        /* time after which past pressure is ignored */
#define READ_INTERVAL USEC_SEC           /* interval at which the figures are read again */

/*
 * Pressure stall information: share of the last ten seconds in which tasks waited. Between the two
 * thresholds the limit stays as it is (hysteresis). CPU pressure only slows runs down, so it never
 * lowers the limit below its initial value. Memory pressure can stop the machine.
 */
static const struct pressure {
	enum machine_figure figure;
	enum capacity_why why;
	int64_t raise_below, lower_above; /* thousandths of a percent */
	int64_t per_core, at_least;       /* lower bound of the limit; 0: its initial value */
} pressures[] = {
	{MACHINE_MEMORY, CAPACITY_MEMORY, 5000, 15000, 1, 2},
	{MACHINE_IO, CAPACITY_IO, 40000, 70000, 2, 4},
	{MACHINE_CPU, CAPACITY_CPU, 80000, 95000, 0, 0},
};
#define LOAD_RAISE 3 /* load average per core, if CPU pressure is not available */
#define LOAD_LOWER 6

const char *capacity_why_words(enum capacity_why w)
{
	static const char *const words[CAPACITY_WHY_MAX] = {
		[CAPACITY_PINNED] = "pinned by the configuration",
		[CAPACITY_START] = "by the number of cores",
		[CAPACITY_RAISED] = "raised, as work was waiting",
		[CAPACITY_CPU] = "lowered, as the processors are busy",
		[CAPACITY_LOAD] = "lowered, as the load is high",
		[CAPACITY_IO] = "lowered, as the disks are busy",
		[CAPACITY_MEMORY] = "lowered, as memory is short",
	};

	return w < CAPACITY_WHY_MAX ? words[w] : "unknown";
}

static size_t clamp(int64_t n, size_t low, size_t high)
{
	if (n < (int64_t)low)
		return low < high ? low : high;
	return (size_t)n > high ? high : (size_t)n;
}

void capacity_init(struct capacity *c, int64_t cores, size_t ceiling)
{
	*c = (struct capacity){.cores = cores > 0 ? cores : 1, .ceiling = ceiling, .why = CAPACITY_START};
	c->limit = c->start = clamp(16 * c->cores, 64, ceiling);
}

void capacity_pin(struct capacity *c, size_t limit)
{
	*c = (struct capacity){.limit = limit, .start = limit, .ceiling = limit, .cores = 1, .why = CAPACITY_PINNED};
}

/*
 * Whether most runs are short. A lower limit does not reduce the CPU load of short runs, because
 * the work stays the same.
 */
static bool runs_are_short(const struct capacity_view *v)
{
	return v->ended > (int64_t)v->in_flight;
}

static size_t lower_bound(const struct capacity *c, const struct pressure *p)
{
	return p->per_core ? clamp(p->per_core * c->cores, (size_t)p->at_least, c->start) : c->start;
}

/* The reason to lower the limit, and the lower bound; CAPACITY_WHY_MAX: no reason. */
static enum capacity_why pressure_reason(const struct capacity *c, const struct capacity_view *v, size_t *ret_floor)
{
	for (size_t i = 0; i < sizeof(pressures) / sizeof(*pressures); i++) {
		const struct pressure *p = &pressures[i];

		if (v->machine.thousandths[p->figure] <= p->lower_above || (p->figure == MACHINE_CPU && runs_are_short(v)))
			continue;
		*ret_floor = lower_bound(c, p);
		return p->why;
	}
	*ret_floor = c->start;
	if (v->machine.thousandths[MACHINE_CPU] < 0 && v->machine.thousandths[MACHINE_LOAD] > LOAD_LOWER * 1000 * c->cores &&
	    !runs_are_short(v))
		return CAPACITY_LOAD;
	return CAPACITY_WHY_MAX;
}

static bool pressure_is_low(const struct capacity *c, const struct capacity_view *v)
{
	for (size_t i = 0; i < sizeof(pressures) / sizeof(*pressures); i++) {
		const struct pressure *p = &pressures[i];

		if (v->machine.thousandths[p->figure] >= p->raise_below && !(p->figure == MACHINE_CPU && runs_are_short(v)))
			return false;
	}
	return v->machine.thousandths[MACHINE_CPU] >= 0 || runs_are_short(v) ||
	       v->machine.thousandths[MACHINE_LOAD] < LOAD_RAISE * 1000 * c->cores;
}

static bool change_limit(struct capacity *c, size_t limit, enum capacity_why why, usec_t now)
{
	bool changed = limit != c->limit;

	c->limit = limit;
	c->why = why;
	c->moved_at = now;
	return changed;
}

static bool lower_limit(struct capacity *c, const struct capacity_view *v, size_t floor, enum capacity_why why)
{
	size_t used = v->in_flight < c->limit ? v->in_flight : c->limit, to = used - used / 4;

	if (c->limit <= floor || (c->lowered_at && v->now - c->lowered_at < LOWER_INTERVAL))
		return false;
	c->lowered_at = v->now;
	return change_limit(c, to > floor ? to : floor, why, v->now);
}

static bool pressed_recently(const struct capacity *c, usec_t now)
{
	return c->pressed_at && now - c->pressed_at < PRESSURE_FORGET;
}

static usec_t next_raise_at(const struct capacity *c, usec_t now)
{
	usec_t rested = c->pressed_at + PRESSURE_REST, paced = c->moved_at + RAISE_INTERVAL_PRESSED;

	if (!pressed_recently(c, now))
		return c->moved_at + RAISE_INTERVAL;
	return rested > paced ? rested : paced;
}

static bool raise_limit(struct capacity *c, const struct capacity_view *v)
{
	size_t to = pressed_recently(c, v->now) ? c->limit + c->limit / 4 + 1 : c->limit * 2;

	if (v->now < next_raise_at(c, v->now))
		return false;
	if (!pressed_recently(c, v->now) && to < c->start)
		to = c->start;
	return change_limit(c, to < c->ceiling ? to : c->ceiling, CAPACITY_RAISED, v->now);
}

bool capacity_step(struct capacity *c, const struct capacity_view *v)
{
	size_t floor;
	enum capacity_why why;

	if (c->why == CAPACITY_PINNED)
		return false;
	why = pressure_reason(c, v, &floor);
	if (why != CAPACITY_WHY_MAX) {
		c->pressed_at = v->now;
		return lower_limit(c, v, floor, why);
	}
	if (!v->waiting || v->in_flight < c->limit || c->limit >= c->ceiling || !pressure_is_low(c, v))
		return false;
	return raise_limit(c, v);
}

usec_t capacity_again(const struct capacity *c, usec_t now)
{
	usec_t at = next_raise_at(c, now);

	if (c->why == CAPACITY_PINNED || c->limit >= c->ceiling)
		return USEC_NEVER;
	return at > now ? at : now + READ_INTERVAL;
}
