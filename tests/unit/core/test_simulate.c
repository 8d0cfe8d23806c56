/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the simulation: overlaps, limits, days, busiest minutes, clock changes, bounds. */
#include "core/decide/simulate.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/schedule_set.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "unit/unit.h"

#define JOBS_MAX 8

struct world {
	struct simulate s;
	struct simulate_job jobs[JOBS_MAX];
	struct simulate_limit limits[4];
	struct simulate_day days[40];
	struct schedule_set *sets[JOBS_MAX];
	struct zone_cache *zones;
};

static usec_t at(const char *text)
{
	struct err e = {};
	usec_t t;

	if (!rfc3339_parse(text, &t, &e))
		fail_msg("%s", e.msg);
	return t;
}

static void world_init(struct world *w, const char *from, int days)
{
	*w = (struct world){.zones = zone_cache_new(tzfile_read)};
	w->s = (struct simulate){.from = at(from), .until = at(from) + days * USEC_DAY,
		.jobs = w->jobs, .limits = w->limits, .days = w->days, .n_days = (size_t)days,
		.slots_max = 1000000};
	for (int i = 0; i < days; i++)
		w->days[i].from = at(from) + i * USEC_DAY;
}

static void world_done(struct world *w)
{
	for (size_t i = 0; i < w->s.n_jobs; i++)
		schedule_set_free(w->sets[i]);
	zone_cache_free(w->zones);
}

static struct simulate_job *add(struct world *w, const char *schedule, const char *tz, usec_t usual)
{
	struct simulate_job *j = &w->jobs[w->s.n_jobs];
	AUTO_DONE(strv) texts = {};
	struct schedule_context c = {.anchor = w->s.from, .id = "x", .accepted = true};
	struct err e = {};

	strv_add(&texts, schedule);
	if (!zone_cache_get(w->zones, tz, &c.zone, &e) ||
		!schedule_set_parse(&texts, &c, &w->sets[w->s.n_jobs], &e))
		fail_msg("%s", e.msg);
	*j = (struct simulate_job){.set = w->sets[w->s.n_jobs], .zone = c.zone, .usual = usual,
		.slow = usual, .policy = {.overlap = OVERLAP_SKIP, .permits = 1}};
	if (!schedule_set_next(j->set, w->s.from - 1, &j->first))
		j->first = 0;
	w->s.n_jobs++;
	return j;
}

static void runs_are_counted_by_day_and_minute(void **state)
{
	AUTO_DONE(world) w;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 3);
	add(&w, "0 2 * * *", NULL, 30 * USEC_MIN);
	add(&w, "0 2 * * *", NULL, 10 * USEC_MIN);
	add(&w, "5 2 3 * *", NULL, USEC_MIN);
	simulate_run(&w.s);
	assert_int_equal(w.s.stop, SIMULATE_COMPLETE);
	assert_int_equal(w.s.runs, 7);
	assert_int_equal(w.days[0].runs, 2);
	assert_int_equal(w.days[1].runs, 3);
	assert_int_equal(w.days[0].busy, 40 * USEC_MIN);
	assert_int_equal(w.days[0].peak, 2);
	assert_int_equal(w.days[1].peak, 3);
	assert_int_equal(w.days[1].peak_at, at("2026-11-03T02:05:00Z"));
	assert_int_equal(w.s.peak, 3);
	assert_int_equal(w.s.n_busiest, 4);
	assert_int_equal(w.s.busiest[0].starts, 2);
	assert_int_equal(w.s.busiest[0].at, at("2026-11-02T02:00:00Z"));
	assert_int_equal(w.s.busiest[3].starts, 1);
}

static void a_run_longer_than_the_interval_makes_every_second_slot_skip(void **state)
{
	AUTO_DONE(world) w;
	struct simulate_job *j;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 1);
	j = add(&w, "*/10 * * * *", NULL, 15 * USEC_MIN);
	simulate_run(&w.s);
	assert_int_equal(j->slots, 144);
	assert_int_equal(j->runs, 72);
	assert_int_equal(j->skipped, 72);
	assert_int_equal(j->first_skipped, at("2026-11-02T00:10:00Z"));
	assert_int_equal(w.days[0].skipped, 72);
}

static void only_a_slow_run_overlaps_possibly(void **state)
{
	AUTO_DONE(world) w;
	struct simulate_job *j;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 1);
	j = add(&w, "0 * * * *", NULL, 50 * USEC_MIN);
	j->slow = 61 * USEC_MIN;
	simulate_run(&w.s);
	assert_int_equal(j->skipped, 0);
	assert_int_equal(j->possible, 23);
}

static void the_overlap_policy_of_a_job_is_used(void **state)
{
	AUTO_DONE(world) w;
	struct simulate_job *queue, *replace, *allow;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 1);
	queue = add(&w, "*/10 * * * *", NULL, 15 * USEC_MIN);
	queue->policy.overlap = OVERLAP_QUEUE;
	queue->policy.overlap_waiting = 1;
	replace = add(&w, "*/10 * * * *", NULL, 15 * USEC_MIN);
	replace->policy.overlap = OVERLAP_REPLACE;
	allow = add(&w, "*/10 * * * *", NULL, 15 * USEC_MIN);
	allow->policy.overlap = OVERLAP_ALLOW;
	allow->policy.permits = 0;
	simulate_run(&w.s);
	assert_int_equal(queue->runs, 96); /* one after another, without a break */
	assert_in_range(queue->skipped, 46, 48);
	assert_int_equal(replace->runs, 144);
	assert_int_equal(replace->replaced, 143);
	assert_int_equal(allow->runs, 144);
	assert_int_equal(allow->skipped, 0);
}

static void a_limit_delays_runs(void **state)
{
	AUTO_DONE(world) w;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 1);
	w.s.n_limits = 2;
	w.limits[0].running = 2;
	w.limits[1].running = 1;
	for (int i = 0; i < 4; i++) {
		struct simulate_job *j = add(&w, "0 3 * * *", NULL, 10 * USEC_MIN);

		j->limits[j->n_limits++] = 0;
		if (i >= 2)
			j->limits[j->n_limits++] = 1;
	}
	simulate_run(&w.s);
	assert_int_equal(w.s.runs, 4);
	assert_int_equal(w.s.peak, 2);
	assert_int_equal(w.limits[0].peak, 2);
	assert_int_equal(w.limits[1].peak, 1);
	/* two start at 3:00, the third at 3:10, the last one waits for the second limit */
	assert_int_equal(w.limits[0].delayed, 1);
	assert_int_equal(w.limits[0].longest, 10 * USEC_MIN);
	assert_int_equal(w.limits[1].delayed, 1);
	assert_int_equal(w.limits[1].longest, 20 * USEC_MIN);
	assert_int_equal(w.limits[1].first_at, at("2026-11-02T03:00:00Z"));
	assert_int_equal(w.days[0].delayed, 2);
}

static void a_run_that_waits_beyond_its_deadline_expires(void **state)
{
	AUTO_DONE(world) w;
	struct simulate_job *late;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 1);
	w.s.n_limits = 1;
	w.limits[0].running = 1;
	add(&w, "0 3 * * *", NULL, USEC_HOUR)->n_limits = 1;
	late = add(&w, "1 3 * * *", NULL, USEC_MIN);
	late->n_limits = 1;
	late->policy.deadline = 30 * USEC_MIN;
	simulate_run(&w.s);
	assert_int_equal(late->runs, 0);
	assert_int_equal(late->expired, 1);
}

static void a_pause_skips_slots_until_its_end(void **state)
{
	AUTO_DONE(world) w;
	struct simulate_job *j;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 1);
	j = add(&w, "0 * * * *", NULL, USEC_SEC);
	j->resumes_at = at("2026-11-02T06:00:00Z");
	simulate_run(&w.s);
	assert_int_equal(j->paused, 6);
	assert_int_equal(j->runs, 18);
	assert_int_equal(j->skipped, 0);
}

static void an_after_finish_job_counts_from_its_end(void **state)
{
	AUTO_DONE(world) w;
	struct simulate_job *j;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 1);
	j = add(&w, "after-finish 10m", NULL, 50 * USEC_MIN);
	j->first = w.s.from;
	simulate_run(&w.s);
	assert_int_equal(j->runs, 24);
}

static void too_many_slots_end_the_simulation_early(void **state)
{
	AUTO_DONE(world) w;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 2);
	add(&w, "* * * * *", NULL, USEC_SEC);
	w.s.slots_max = 1440;
	simulate_run(&w.s);
	assert_int_equal(w.s.stop, SIMULATE_SLOTS);
	assert_int_equal(w.s.stopped_at, at("2026-11-02T23:59:01Z"));
	assert_int_equal(w.s.slots, 1440);
}

static void a_backlog_that_grows_without_end_stops_it(void **state)
{
	AUTO_DONE(world) w;
	struct simulate_job *j;

	(void)state;
	world_init(&w, "2026-11-02T00:00:00Z", 3);
	w.s.n_limits = 1;
	w.limits[0].running = 1;
	j = add(&w, "* * * * * *", NULL, USEC_HOUR);
	j->policy = (struct start_policy){.overlap = OVERLAP_ALLOW};
	j->n_limits = 1;
	simulate_run(&w.s);
	assert_int_equal(w.s.stop, SIMULATE_WAITING);
}

static void clock_changes_name_the_jobs_of_that_hour(void **state)
{
	AUTO_DONE(world) w;
	struct simulate_change v[8];

	(void)state;
	world_init(&w, "2027-03-20T00:00:00Z", 30);
	add(&w, "30 2 * * *", "Europe/Berlin", USEC_SEC);
	add(&w, "30 3 * * *", "Europe/Berlin", USEC_SEC);
	add(&w, "30 2 * * *", "UTC", USEC_SEC);
	add(&w, "15 2 * * 0", "Europe/Berlin", USEC_SEC);
	assert_int_equal(simulate_changes(&w.s, v, 8), 1);
	assert_int_equal(v[0].at, at("2027-03-28T01:00:00Z"));
	assert_int_equal(v[0].shift, 3600);
	assert_int_equal(v[0].jobs, 2);
	assert_int_equal(v[0].some[0], 0);
	assert_int_equal(v[0].some[1], 3);
	w.s.from = at("2026-10-20T00:00:00Z");
	w.s.until = at("2026-10-30T00:00:00Z");
	assert_int_equal(simulate_changes(&w.s, v, 8), 1);
	assert_int_equal(v[0].shift, -3600);
	assert_int_equal(v[0].jobs, 2);
	assert_int_equal(simulate_changes(&w.s, v, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_counted_by_day_and_minute),
		cmocka_unit_test(a_run_longer_than_the_interval_makes_every_second_slot_skip),
		cmocka_unit_test(only_a_slow_run_overlaps_possibly),
		cmocka_unit_test(the_overlap_policy_of_a_job_is_used),
		cmocka_unit_test(a_limit_delays_runs),
		cmocka_unit_test(a_run_that_waits_beyond_its_deadline_expires),
		cmocka_unit_test(a_pause_skips_slots_until_its_end),
		cmocka_unit_test(an_after_finish_job_counts_from_its_end),
		cmocka_unit_test(too_many_slots_end_the_simulation_early),
		cmocka_unit_test(a_backlog_that_grows_without_end_stops_it),
		cmocka_unit_test(clock_changes_name_the_jobs_of_that_hour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
