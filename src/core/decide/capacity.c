/* SPDX-License-Identifier: Apache-2.0 */
/* Raised fast while work waits on a machine at ease, lowered under pressure, left alone in between. */
#include "core/decide/capacity.h"

#define RAISE_PACE (250 * USEC_MSEC) /* between two raises */
#define CAREFUL_PACE (3 * USEC_SEC)  /* ... where it was too much lately */
#define LOWER_PACE (5 * USEC_SEC)    /* between two steps down: the figures are means of ten seconds */
#define REST (15 * USEC_SEC)         /* after pressure before a step up */
#define FORGET (2 * USEC_MIN)        /* after so long a low limit says nothing about the machine any more */
#define LOOK_PACE USEC_SEC           /* how often the figures are worth another look */

/*
 * Percent of the last ten seconds in which something waited. Between the two the limit stays: no flapping. A full
 * processor only makes all slower, so that never takes the limit below its start; memory that runs out stops the machine.
 */
static const struct pressure {
	enum machine_figure figure;
	enum capacity_why why;
	int64_t raise_below, lower_above; /* thousandths of a percent */
	int64_t per_core, at_least;       /* lowered no further than this; 0: no further than the start */
} pressures[] = {
	{MACHINE_MEMORY, CAPACITY_MEMORY, 5000, 15000, 1, 2},
	{MACHINE_IO, CAPACITY_IO, 40000, 70000, 2, 4},
	{MACHINE_CPU, CAPACITY_CPU, 80000, 95000, 0, 0},
};
#define LOAD_RAISE 3 /* load average per core, where pressure is not known */
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

/* Short runs come and go whatever the limit is: fewer at a time would leave as much to do. */
static bool passing(const struct capacity_view *v)
{
	return v->ended > (int64_t)v->in_flight;
}

static size_t floor_of(const struct capacity *c, const struct pressure *p)
{
	return p->per_core ? clamp(p->per_core * c->cores, (size_t)p->at_least, c->start) : c->start;
}

/* What asks for fewer, and how few at most; CAPACITY_WHY_MAX: nothing. */
static enum capacity_why too_much(const struct capacity *c, const struct capacity_view *v, size_t *ret_floor)
{
	for (size_t i = 0; i < sizeof(pressures) / sizeof(*pressures); i++) {
		const struct pressure *p = &pressures[i];

		if (v->machine.thousandths[p->figure] <= p->lower_above || (p->figure == MACHINE_CPU && passing(v)))
			continue;
		*ret_floor = floor_of(c, p);
		return p->why;
	}
	*ret_floor = c->start;
	if (v->machine.thousandths[MACHINE_CPU] < 0 && v->machine.thousandths[MACHINE_LOAD] > LOAD_LOWER * 1000 * c->cores &&
	    !passing(v))
		return CAPACITY_LOAD;
	return CAPACITY_WHY_MAX;
}

static bool at_ease(const struct capacity *c, const struct capacity_view *v)
{
	for (size_t i = 0; i < sizeof(pressures) / sizeof(*pressures); i++) {
		const struct pressure *p = &pressures[i];

		if (v->machine.thousandths[p->figure] >= p->raise_below && !(p->figure == MACHINE_CPU && passing(v)))
			return false;
	}
	return v->machine.thousandths[MACHINE_CPU] >= 0 || passing(v) ||
	       v->machine.thousandths[MACHINE_LOAD] < LOAD_RAISE * 1000 * c->cores;
}

static bool move(struct capacity *c, size_t limit, enum capacity_why why, usec_t now)
{
	bool changed = limit != c->limit;

	c->limit = limit;
	c->why = why;
	c->moved_at = now;
	return changed;
}

static bool step_down(struct capacity *c, const struct capacity_view *v, size_t floor, enum capacity_why why)
{
	size_t used = v->in_flight < c->limit ? v->in_flight : c->limit, to = used - used / 4;

	if (c->limit <= floor || (c->lowered_at && v->now - c->lowered_at < LOWER_PACE))
		return false;
	c->lowered_at = v->now;
	return move(c, to > floor ? to : floor, why, v->now);
}

static bool careful(const struct capacity *c, usec_t now)
{
	return c->pressed_at && now - c->pressed_at < FORGET;
}

static usec_t may_rise_at(const struct capacity *c, usec_t now)
{
	usec_t rested = c->pressed_at + REST, paced = c->moved_at + CAREFUL_PACE;

	if (!careful(c, now))
		return c->moved_at + RAISE_PACE;
	return rested > paced ? rested : paced;
}

static bool step_up(struct capacity *c, const struct capacity_view *v)
{
	size_t to = careful(c, v->now) ? c->limit + c->limit / 4 + 1 : c->limit * 2;

	if (v->now < may_rise_at(c, v->now))
		return false;
	if (!careful(c, v->now) && to < c->start)
		to = c->start;
	return move(c, to < c->ceiling ? to : c->ceiling, CAPACITY_RAISED, v->now);
}

bool capacity_step(struct capacity *c, const struct capacity_view *v)
{
	size_t floor;
	enum capacity_why why;

	if (c->why == CAPACITY_PINNED)
		return false;
	why = too_much(c, v, &floor);
	if (why != CAPACITY_WHY_MAX) {
		c->pressed_at = v->now;
		return step_down(c, v, floor, why);
	}
	if (!v->waiting || v->in_flight < c->limit || c->limit >= c->ceiling || !at_ease(c, v))
		return false;
	return step_up(c, v);
}

usec_t capacity_again(const struct capacity *c, usec_t now)
{
	usec_t at = may_rise_at(c, now);

	if (c->why == CAPACITY_PINNED || c->limit >= c->ceiling)
		return USEC_NEVER;
	return at > now ? at : now + LOOK_PACE;
}
