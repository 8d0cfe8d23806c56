/* SPDX-License-Identifier: Apache-2.0 */
/* The store's promises about jobs and runs, the same on each engine. */
#include "base/text.h"
#include "store_fixture.h"
#include <string.h>

static void a_job_for_now_goes_through_its_whole_life(void **state)
{
	struct store *s = ((struct fixture *)*state)->store;
	int64_t id = add_job(s, "hello");
	AUTO(run) *claimed = claim_one(s, T0);
	AUTO(run) *ended = NULL;
	AUTO(job) *job = NULL;
	AUTO_DONE(attempt_list) attempts = {};
	struct err e = {};

	assert_non_null(claimed);
	assert_int_equal(claimed->job, id);
	assert_int_equal(claimed->state, RUN_CLAIMED);
	assert_int_equal(claimed->fence, 1);
	assert_string_equal(claimed->node, NODE);
	assert_string_equal(claimed->job_name, "hello");
	assert_string_equal(claimed->owner, "ann");
	start_run(s, claimed, T0 + 1);
	end_run(s, claimed, ATTEMPT_SUCCEEDED, T0 + 100);
	ended = get_run(s, claimed->id);
	assert_int_equal(ended->state, RUN_SUCCEEDED);
	assert_int_equal(ended->attempt, 1);
	assert_int_equal(ended->exit_code, 0);
	assert_int_equal(ended->started_at, T0 + 1);
	assert_int_equal(ended->ended_at, T0 + 100);
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_FINISHED);
	assert_int_equal(job->last_run.id, claimed->id);
	assert_int_equal(job->last_run.state, RUN_SUCCEEDED);
	assert_true(store_attempts(s, claimed->id, &attempts, &e));
	assert_int_equal(attempts.n, 1);
	assert_int_equal(attempts.v[0]->outcome, ATTEMPT_SUCCEEDED);
	assert_int_equal(attempts.v[0]->pid, 4711);
	assert_int_equal(attempts.v[0]->started_at, T0 + 1);
	assert_string_equal(attempts.v[0]->spawner, SPAWNER);
	assert_counts_true(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_job_for_now_goes_through_its_whole_life),
	};

	return cmocka_run_group_tests(tests, place_group_setup, place_group_teardown);
}
