/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the schedules of the jobs of a bulk: adjacent jobs with the same schedule share the parsed one. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/zone_cache.h"
#include "daemon/api/submit/submission.h"
#include "store/ops/job/jobs.h"
#include "unit/unit.h"

#define NOW (INT64_C(1700000000) * USEC_SEC)

static void prepare(const char *body, struct submission *s)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	struct err e = {};

	submission_init(s);
	buf_str(&s->body, body);
	s->bulk = true;
	s->max_body = 1 << 20;
	s->max_jobs = 3;
	s->now = NOW;
	if (!submission_prepare(s, zones, &e))
		fail_msg("%s", e.msg);
}

static void each_job_has_the_slots_of_its_own_schedule(void **state)
{
	static const char plain[] = "{\"command\":[\"true\"],\"schedule\":\"2024-01-01 09:00\",\"tz\":\"UTC\"}";
	static const struct {
		const char *second; /* members of the second of three jobs; the others are plain */
		usec_t slot;        /* of the second job, in seconds */
	} cases[] = {
		{"\"schedule\":\"2024-01-01 09:00\",\"tz\":\"UTC\"", 1704099600},
		{"\"schedule\":\"2024-01-01 10:00\",\"tz\":\"UTC\"", 1704103200},
		{"\"schedule\":\"2024-01-01 09:00\",\"tz\":\"Europe/Paris\"", 1704096000},
		{"\"schedule\":[\"2024-01-01 09:00\",\"2023-12-31 09:00\"],\"tz\":\"UTC\"", 1704013200},
		{"\"schedule\":\"@daily\",\"tz\":\"UTC\"", 1700006400},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_TEXT body = xprintf("{\"jobs\":[%s,{\"command\":[\"true\"],%s},%s]}", plain, cases[i].second, plain);
		AUTO_DONE(submission) s = {};

		prepare(body, &s);
		assert_int_equal(s.jobs[0].next_slot, INT64_C(1704099600) * USEC_SEC);
		assert_int_equal(s.jobs[1].next_slot, cases[i].slot * USEC_SEC);
		assert_int_equal(s.jobs[2].next_slot, INT64_C(1704099600) * USEC_SEC);
		assert_string_equal(s.jobs[0].spec, s.jobs[2].spec);
	}
}

/* The times of a recurring schedule depend on 'from' and 'until', too. */
static void a_later_beginning_is_not_shared(void **state)
{
	AUTO_DONE(submission) s = {};

	(void)state;
	prepare("{\"jobs\":[{\"command\":[\"true\"],\"schedule\":\"@daily\"},"
		"{\"command\":[\"true\"],\"schedule\":\"@daily\",\"from\":\"2024-01-05T00:00:00Z\"}]}", &s);
	assert_int_equal(s.jobs[0].next_slot, INT64_C(1700006400) * USEC_SEC);
	assert_int_equal(s.jobs[1].next_slot, INT64_C(1704412800) * USEC_SEC);
}

static void h_follows_the_name_of_each_job(void **state)
{
	AUTO_DONE(submission) s = {};

	(void)state;
	prepare("{\"jobs\":[{\"command\":[\"true\"],\"name\":\"a\",\"schedule\":\"H H * * *\"},"
		"{\"command\":[\"true\"],\"name\":\"b\",\"schedule\":\"H H * * *\"}]}", &s);
	assert_true(s.jobs[0].next_slot != s.jobs[1].next_slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_job_has_the_slots_of_its_own_schedule),
		TEST(a_later_beginning_is_not_shared),
		TEST(h_follows_the_name_of_each_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
