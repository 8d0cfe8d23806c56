/* SPDX-License-Identifier: Apache-2.0 */
/* Cron's log and its comparison with the slots of lines. */
#include "base/auto.h"
#include "base/text.h"
#include "jobctl/cron/compare.h"
#include "jobctl/cron/cron_log.h"
#include "unit/unit.h"
#include <stdlib.h>
#include <string.h>

#define NOW (INT64_C(1794988800) * USEC_SEC) /* 2026-11-18T08:00:00Z */

static bool read_line(const char *line, struct cron_starts *ret)
{
	struct cron_start s;

	if (!cron_log_line(line, strlen(line), NOW, &s))
		return false;
	ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
	ret->v[ret->n++] = s;
	return true;
}

static void starts_are_read_from_syslog_lines(void **state)
{
	AUTO_DONE(cron_starts) l = {};

	(void)state;
	setenv("TZ", "UTC", 1);
	assert_true(read_line("Nov 18 07:17:01 host CRON[123]: (root) CMD (   cd / && run-parts --report /etc/cron.hourly)", &l));
	assert_true(read_line("2026-11-18T07:18:01.123456+00:00 host CROND[9]: (alice) CMD (echo (a) )", &l));
	assert_true(read_line("Dec 31 23:59:01 host /usr/sbin/cron[1]: (bob) CMD (true)", &l));
	assert_false(read_line("Nov 18 07:17:01 host CRON[123]: pam_unix(cron:session): session opened for user root", &l));
	assert_false(read_line("Nov 18 07:17:01 host sshd[123]: (root) CMD (forged)", &l));
	assert_false(read_line("Nov 18 07:17:01 host CRON[123]: (root) CMD (cut", &l));
	assert_false(read_line("", &l));
	assert_int_equal(l.n, 3);
	assert_string_equal(l.v[0].user, "root");
	assert_string_equal(l.v[0].command, "cd / && run-parts --report /etc/cron.hourly");
	assert_int_equal(l.v[0].at, (INT64_C(1794986221)) * USEC_SEC);
	assert_string_equal(l.v[1].command, "echo (a)");
	assert_true(l.v[2].at < NOW); /* of the year before */
}

static struct cron_start start(const char *user, const char *command, int64_t minute, int64_t second)
{
	return (struct cron_start){NOW + minute * USEC_MIN + second * USEC_SEC, (char *)user, (char *)command};
}

static void starts_and_slots_are_compared_by_the_minute(void **state)
{
	struct compare_line line[] = {{(char *)"root", (char *)"a", (char *)"/etc/crontab:1", NOW, 1},
		{(char *)"root", (char *)"b", (char *)"/etc/crontab:2", NOW + 5 * USEC_MIN, 2}};
	const struct compare_lines lines = {line, 2};
	const struct compare_slot slots[] = {{0, NOW}, {0, NOW + USEC_MIN}, {0, NOW + 2 * USEC_MIN}, {1, NOW + 6 * USEC_MIN}};
	struct cron_start v[] = {start("root", "a", 0, 1), start("root", "a", 1, 59), start("root", "b", 4, 1), start("root", "b", 6, 1),
		start("eve", "c", 3, 1), start("root", "a", -5, 1), start("root", "a", 30, 1)};
	const struct cron_starts starts = {v, 7};
	struct compare_result r;

	(void)state;
	compare_run(&lines, slots, 4, &starts, NOW, NOW + 10 * USEC_MIN, &r);
	assert_int_equal(r.both, 3);
	assert_int_equal(r.n, 2);
	assert_false(r.v[0].by_cron); /* minute 2: only jobsched */
	assert_string_equal(r.v[0].origin, "/etc/crontab:1");
	assert_true(r.v[1].by_cron);  /* minute 3: a command of no table */
	assert_null(r.v[1].origin);
	free(r.v);
}

static void equal_lines_need_as_many_starts(void **state)
{
	struct compare_line line[] = {{(char *)"root", (char *)"a", (char *)"x:1", 0, 1}, {(char *)"root", (char *)"a", (char *)"x:2", 0, 2}};
	const struct compare_lines lines = {line, 2};
	const struct compare_slot slots[] = {{0, NOW}, {1, NOW}};
	struct cron_start v[] = {start("root", "a", 0, 1), start("root", "a", 0, 1), start("root", "a", 0, 2)};
	const struct cron_starts starts = {v, 3};
	struct compare_result r;

	(void)state;
	compare_run(&lines, slots, 2, &starts, NOW, NOW + USEC_MIN, &r);
	assert_int_equal(r.both, 2);
	assert_int_equal(r.n, 1);
	assert_true(r.v[0].by_cron);
	free(r.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(starts_are_read_from_syslog_lines),
		TEST(starts_and_slots_are_compared_by_the_minute),
		TEST(equal_lines_need_as_many_starts),
	};

	return RUN_TESTS(tests);
}
