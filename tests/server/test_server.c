/* SPDX-License-Identifier: Apache-2.0 */
/* Visibility and quotas with several users on one server. Needs root to use several uids. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "server/server_rig.h"
#include "unit/unit.h"
#include "wire/http_client.h"
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static size_t count_jobs(const struct rig *rig, uint32_t uid)
{
	AUTO_DONE(rig_reply) a = rig_request(rig, uid, "GET", "/v1/jobs", NULL);

	assert_int_equal(a.kind, ERR_NONE);
	return json_array_size(json_object_get(a.json, "jobs"));
}

/* ---- cases ---- */

static void a_job_is_visible_to_its_owner_and_administrators_only(void **state)
{
	struct rig rig = {};

	(void)state;
	rig_start(&rig, &rig_generous);
	assert_int_equal(rig_submit(&rig, ANN, ",\"name\":\"secret\""), ERR_NONE);
	assert_int_equal(count_jobs(&rig, ANN), 1);
	assert_int_equal(count_jobs(&rig, BOB), 0);
	assert_int_equal(count_jobs(&rig, ROOT), 1);
	assert_int_equal(rig_request_kind(&rig, ANN, "GET", "/v1/jobs/secret", NULL), ERR_NONE);
	for (size_t i = 0; i < 2; i++) {
		const char *refs[] = { "1", "secret" };
		AUTO_TEXT get = xprintf("/v1/jobs/%s", refs[i]);
		AUTO_TEXT cancel = xprintf("/v1/jobs/%s/cancel", refs[i]);

		assert_int_equal(rig_request_kind(&rig, BOB, "GET", get, NULL), ERR_NOT_FOUND);
		assert_int_equal(rig_request_kind(&rig, BOB, "POST", cancel, NULL), ERR_NOT_FOUND);
		assert_int_equal(rig_request_kind(&rig, BOB, "DELETE", get, NULL), ERR_NOT_FOUND);
	}
	assert_int_equal(rig_submit(&rig, BOB, ",\"name\":\"secret\""), ERR_NONE);
	assert_int_equal(rig_request_kind(&rig, BOB, "DELETE", "/v1/jobs/secret", NULL), ERR_NONE);
	assert_int_equal(rig_request_kind(&rig, ANN, "GET", "/v1/jobs/secret", NULL), ERR_NONE);
	assert_int_equal(rig_request_kind(&rig, ROOT, "DELETE", "/v1/jobs/1", NULL), ERR_NONE);
	assert_int_equal(count_jobs(&rig, ANN), 0);
	rig_stop(&rig);
}

static void the_job_of_another_user_is_reported_as_missing(void **state)
{
	struct rig rig = {};
	struct rig_reply foreign, missing;

	(void)state;
	rig_start(&rig, &rig_generous);
	assert_int_equal(rig_submit(&rig, ANN, ",\"name\":\"secret\""), ERR_NONE);
	foreign = rig_request(&rig, BOB, "GET", "/v1/jobs/secret", NULL);
	missing = rig_request(&rig, BOB, "GET", "/v1/jobs/nothin", NULL);
	assert_string_equal(foreign.msg, "no job 'secret'; 'jobctl list' shows yours");
	assert_string_equal(missing.msg, "no job 'nothin'; 'jobctl list' shows yours");
	assert_int_equal(rig_request_kind(&rig, BOB, "GET", "/v1/jobs/secre", NULL), ERR_NOT_FOUND);
	rig_stop(&rig);
}

static void a_user_without_a_name_is_not_served(void **state)
{
	struct rig rig = {};

	(void)state;
	rig_start(&rig, &rig_generous);
	assert_int_equal(rig_request_kind(&rig, OVERFLOW, "GET", "/v1/status", NULL), ERR_DENIED);
	assert_int_equal(rig_submit(&rig, NAMELESS, ""), ERR_DENIED);
	assert_int_equal(rig_request_kind(&rig, NAMELESS, "GET", "/v1/status", NULL), ERR_DENIED);
	rig_stop(&rig);
}

static void the_submission_rate_limits_each_user_separately(void **state)
{
	struct server_limits l = rig_generous;
	struct rig rig = {};

	(void)state;
	l.submissions_burst = 3;
	l.submissions_per_second = 1;
	rig_start(&rig, &l);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_LIMIT);
	assert_int_equal(rig_submit(&rig, BOB, ""), ERR_NONE);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rig_submit(&rig, ROOT, ""), ERR_NONE);
	/* a bulk larger than the remaining tokens is accepted, and the number becomes negative */
	assert_int_equal(rig_request_kind(&rig, BOB, "POST", "/v1/jobs/bulk",
				 "{\"jobs\":[{\"command\":[\"a\"]},{\"command\":[\"a\"]},{"
				 "\"command\":[\"a\"]},{\"command\":[\"a\"]}]}"),
		ERR_NONE);
	assert_int_equal(rig_submit(&rig, BOB, ""), ERR_LIMIT);
	sleep(2);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	rig_stop(&rig);
}

static void jobs_over_the_quota_are_refused_until_one_is_removed(void **state)
{
	struct server_limits l = rig_generous;
	struct rig rig = {};

	(void)state;
	l.jobs_per_uid = 2;
	rig_start(&rig, &l);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_LIMIT);
	assert_int_equal(rig_submit(&rig, BOB, ""), ERR_NONE);
	assert_int_equal(rig_request_kind(&rig, ANN, "DELETE", "/v1/jobs/1", NULL), ERR_NONE);
	assert_int_equal(rig_submit(&rig, ANN, ""), ERR_NONE);
	assert_int_equal(count_jobs(&rig, ANN), 2);
	rig_stop(&rig);
}

/* A client that connects and sends nothing. */
static pid_t hold(const struct rig *rig, uint32_t uid, int n)
{
	int pipes[2];
	pid_t child;
	char ready;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		if (setuid(uid) < 0)
			_exit(9);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < n; i++) {
			struct http_client *c = NULL;

			if (!http_client_open(rig->socket, &c, NULL))
				_exit(8);
		}
		(void)!write(pipes[1], "", 1);
		pause();
		_exit(0);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &ready, 1), 1);
	close(pipes[0]);
	return child;
}

static void the_connection_quota_limits_each_user_separately(void **state)
{
	struct server_limits l = rig_generous;
	struct rig rig = {};
	pid_t holder;

	(void)state;
	l.connections_per_uid = 4;
	rig_start(&rig, &l);
	holder = hold(&rig, ANN, 4);
	assert_int_equal(rig_request_kind(&rig, ANN, "GET", "/v1/status", NULL), ERR_LIMIT);
	assert_int_equal(rig_request_kind(&rig, BOB, "GET", "/v1/status", NULL), ERR_NONE);
	assert_int_equal(rig_request_kind(&rig, ROOT, "GET", "/v1/status", NULL), ERR_NONE);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	for (int i = 0;
		i < 100 && rig_request_kind(&rig, ANN, "GET", "/v1/status", NULL) != ERR_NONE; i++)
		usleep(20000);
	assert_int_equal(rig_request_kind(&rig, ANN, "GET", "/v1/status", NULL), ERR_NONE);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_is_visible_to_its_owner_and_administrators_only),
		TEST(the_job_of_another_user_is_reported_as_missing),
		TEST(a_user_without_a_name_is_not_served),
		TEST(the_submission_rate_limits_each_user_separately),
		TEST(jobs_over_the_quota_are_refused_until_one_is_removed),
		TEST(the_connection_quota_limits_each_user_separately),
	};

	return RUN_TESTS(tests);
}
