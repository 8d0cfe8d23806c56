/* SPDX-License-Identifier: Apache-2.0 */
/* Plans ten years of slots in ten zones on a fake clock. No slot is lost or planned twice. */
#include "base/buf.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/civil.h"
#include "core/time/schedule.h"
#include "core/time/slots.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "unit/unit.h"

#include <inttypes.h>
#include <stdio.h>

#define YEARS_FROM INT64_C(1735689600) /* 2025-01-01T00:00:00Z */
#define YEARS_UNTIL INT64_C(2051222400) /* 2035-01-01T00:00:00Z */
#define LOOK_AHEAD (5 * USEC_SEC)

static const char *const zone_names[] = { "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
	"America/Santiago", "Africa/Cairo", "Africa/Casablanca", "Antarctica/Troll", "Asia/Kathmandu",
	"Pacific/Chatham" };

struct sim {
	struct zone_cache *zones;
	struct schedule *s;
	const struct zone *zone;
};

static void sim_open(struct sim *m, const char *zone, const char *text)
{
	struct schedule_context c = { .anchor = YEARS_FROM * USEC_SEC };

	*m = (struct sim){ .zones = zone_cache_new(tzfile_read) };
	assert_true(zone_cache_get(m->zones, zone, &m->zone, NULL));
	c.zone = m->zone;
	assert_true(schedule_parse(text, &c, &m->s, NULL));
}

static void sim_done(struct sim *m)
{
	schedule_free(m->s);
	zone_cache_free(m->zones);
}

static bool next_slot(void *arg, usec_t after, usec_t *ret)
{
	return schedule_next(((struct sim *)arg)->s, after, ret);
}

/* Returns a random step of the clock, sometimes a suspend of up to 30 minutes and rarely one of three days. */
static usec_t clock_step(uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
	switch (*random >> 58) {
	case 0:
		return (usec_t)(*random >> 32) % (30 * USEC_MIN);
	case 1:
		return (*random >> 50 & 0xff) ? USEC_MIN : 3 * USEC_DAY;
	default:
		return 5 * USEC_MIN + (usec_t)(*random >> 40) % USEC_MIN;
	}
}

/* Plans all slots up to 'now' in rounds of 1000 steps, like the planner. */
static void plan(struct sim *m, usec_t slot, usec_t now, struct slot_plan *ret)
{
	static const struct slot_policy policy = { { CATCHUP_LATEST, 1 }, false };
	struct slot_walk walk = {};

	for (;;) {
		int64_t steps = 1000;

		if (slots_plan(next_slot, m, &policy, slot, now, now + LOOK_AHEAD, &walk, &steps, ret))
			return;
	}
}

/* Plans all slots, checks that they are complete, and returns their number. */
static int64_t plan_years(struct sim *m, usec_t distance)
{
	uint64_t random = 42;
	usec_t now = YEARS_FROM * USEC_SEC, slot = 0, expected;
	int64_t count = 0;
	struct slot_plan made;

	assert_true(schedule_first(m->s, &slot));
	expected = slot;
	while (slot <= YEARS_UNTIL * USEC_SEC) {
		now += clock_step(&random);
		if (slot > now + LOOK_AHEAD)
			continue;
		plan(m, slot, now, &made);
		for (size_t i = 0; i < made.n; i++) {
			const struct slot_range *r = &made.v[i];

			if (r->first != expected || r->last != r->first + (r->count - 1) * distance)
				fail_msg("%s: slot %" PRId64 " after %" PRId64, m->zone->name, r->first, expected);
			expected = r->last + distance;
			count += r->count;
		}
		assert_true(made.next > slot);
		slot = made.next;
	}
	return count - (expected - (YEARS_UNTIL * USEC_SEC + distance)) / distance;
}

static void every_minute_of_ten_years_is_planned_once_in_ten_zones(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTS(zone_names); i++) {
		__attribute__((cleanup(sim_done))) struct sim m;

		sim_open(&m, zone_names[i], "* * * * *");
		/* the offsets of these zones are whole minutes, so every UTC minute is a slot */
		assert_int_equal(plan_years(&m, USEC_MIN), (YEARS_UNTIL - YEARS_FROM) / 60);
	}
}

static void a_daily_job_runs_once_on_every_local_day(void **state)
{
	static const char *const times[] = { "30 2 * * *", "0 0 * * *", "15 1 * * *", "45 3 * * *" };

	(void)state;
	for (size_t i = 0; i < ELEMENTS(zone_names) * ELEMENTS(times); i++) {
		__attribute__((cleanup(sim_done))) struct sim m;
		usec_t slot = YEARS_FROM * USEC_SEC;
		int64_t last = INT64_MIN;

		sim_open(&m, zone_names[i / ELEMENTS(times)], times[i % ELEMENTS(times)]);
		while (schedule_next(m.s, slot, &slot) && slot < YEARS_UNTIL * USEC_SEC) {
			int64_t t = slot / USEC_SEC, day;
			int of_day;

			day = civil_split(t + zone_offset(m.zone, t), &of_day);
			if (last != INT64_MIN && day != last + 1)
				fail_msg("%s in %s: day %" PRId64 " after day %" PRId64, times[i % ELEMENTS(times)],
					m.zone->name, day, last);
			last = day;
		}
	}
}

/* The clock is set back by an hour every 100 steps. No slot is planned again. */
static void a_clock_that_is_set_back_repeats_no_slot(void **state)
{
	__attribute__((cleanup(sim_done))) struct sim m;
	usec_t now = YEARS_FROM * USEC_SEC, slot = 0, last = 0;
	struct slot_plan made;

	(void)state;
	sim_open(&m, "Europe/Berlin", "* * * * *");
	assert_true(schedule_first(m.s, &slot));
	for (int i = 0; i < 10000; i++) {
		now += i % 100 == 99 ? -USEC_HOUR : USEC_MIN;
		if (slot > now + LOOK_AHEAD)
			continue;
		plan(&m, slot, now, &made);
		for (size_t k = 0; k < made.n; k++) {
			assert_true(made.v[k].first > last);
			last = made.v[k].last;
		}
		slot = made.next;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_minute_of_ten_years_is_planned_once_in_ten_zones),
		TEST(a_daily_job_runs_once_on_every_local_day),
		TEST(a_clock_that_is_set_back_repeats_no_slot),
	};

	return RUN_TESTS(tests);
}
