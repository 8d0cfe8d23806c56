/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs, runs and plans: the tables and the pure decisions. */
#include "base/err.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/start/start_plan.h"
#include "core/job/run.h"
#include "unit/unit.h"
#include <string.h>

static void every_state_name_reads_back(void **state)
{
	enum job_state j;
	enum run_state r;
	enum run_kind k;
	enum attempt_outcome o;

	(void)state;
	for (int i = 0; i < JOB_STATE_MAX; i++)
		assert_true(job_state_parse(job_state_name((enum job_state)i), &j) && (int)j == i);
	for (int i = 0; i < RUN_STATE_MAX; i++)
		assert_true(run_state_parse(run_state_name((enum run_state)i), &r) && (int)r == i);
	for (int i = 0; i < RUN_KIND_MAX; i++)
		assert_true(run_kind_parse(run_kind_name((enum run_kind)i), &k) && (int)k == i);
	for (int i = 0; i < ATTEMPT_OUTCOME_MAX; i++)
		assert_true(attempt_outcome_parse(attempt_outcome_name((enum attempt_outcome)i), &o) && (int)o == i);
	assert_false(run_state_parse("sleeping", &r));
}

static void a_final_run_moves_no_more(void **state)
{
	(void)state;
	for (int from = RUN_SUCCEEDED; from < RUN_STATE_MAX; from++) {
		assert_true(run_state_final((enum run_state)from));
		for (int to = 0; to < RUN_STATE_MAX; to++)
			assert_false(run_move_allowed((enum run_state)from, (enum run_state)to));
	}
	assert_true(run_move_allowed(RUN_QUEUED, RUN_CLAIMED));
	assert_false(run_move_allowed(RUN_QUEUED, RUN_RUNNING));
	assert_false(run_move_allowed(RUN_QUEUED, RUN_SUCCEEDED));
}

static void names_are_checked(void **state)
{
	static const char *const bad[] = {"", "17", "a b", "a/b", "ü", "a#1", "\x1b"};
	char longest[130];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[129] = '\0';
	assert_false(job_name_check(longest, NULL));
	longest[128] = '\0';
	assert_true(job_name_check(longest, NULL));
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(job_name_check(bad[i], NULL));
	assert_true(job_name_check("db-backup_2.sh", NULL));
}

static void the_field_table_is_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];

		assert_non_null(f->help);
		assert_ptr_equal(job_field_find(f->name), f);
		assert_true(f->max >= f->min);
		if (f->flag)
			assert_non_null(f->arg);
		if (f->type >= FIELD_INT)
			assert_true(f->preset >= f->min && f->preset <= f->max);
	}
}

static void a_job_has_one_command(void **state)
{
	struct job_spec s;
	struct err e = {};

	(void)state;
	job_spec_init(&s);
	assert_true(s.umask == 022 && s.grace == 10 * USEC_SEC);
	assert_false(job_spec_check(&s, &e));
	assert_string_equal(e.field, "command");
	strv_add(&s.command, "true");
	assert_true(job_spec_check(&s, &e));
	s.script = xstrdup("true");
	assert_false(job_spec_check(&s, &e));
	assert_string_equal(e.field, "script");
	job_spec_done(&s);
}

static void a_command_the_kernel_would_refuse_is_refused_here(void **state)
{
	struct job_spec s;
	struct err e = {};
	char *word = xcalloc(JOB_WORD_MAX + 2, 1);

	(void)state;
	memset(word, 'x', JOB_WORD_MAX + 1);
	job_spec_init(&s);
	strv_add(&s.command, "echo");
	strv_add(&s.command, word);
	assert_false(job_spec_check(&s, &e));
	assert_string_equal(e.field, "command");
	word[JOB_WORD_MAX] = '\0';
	free(s.command.v[1]);
	s.command.v[1] = xstrdup(word);
	assert_true(job_spec_check(&s, &e));
	for (int i = 0; i < 8; i++)
		strv_add(&s.command, word);
	assert_false(job_spec_check(&s, &e));
	job_spec_done(&s);
	free(word);
}

static const char *env_of(const struct start_plan *p, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = p->vars.n; i-- > 0;)
		if (strncmp(p->vars.v[i], name, len) == 0 && p->vars.v[i][len] == '=')
			return p->vars.v[i] + len + 1;
	return NULL;
}

static void a_plan_tells_the_command_which_slot_it_is_for(void **state)
{
	struct run r = {.id = 17, .job = 12, .uid = 1000, .owner = (char *)"ann", .slot = INT64_C(1711846800500000), .attempt = 2, .fence = 5};
	struct job_spec s;
	struct start_plan p, other;

	(void)state;
	job_spec_init(&s);
	s.script = xstrdup("echo hi");
	strv_add(&s.env, "A=b=c");
	start_plan_build(&p, &(struct start_plan_source){&r, &s, "n1", "abc", NULL});
	assert_string_equal(p.spec.argv.v[0], "/bin/sh");
	assert_string_equal(p.spec.argv.v[2], "echo hi");
	assert_string_equal(env_of(&p, "JOBSCHED_JOB"), "12");
	assert_string_equal(env_of(&p, "JOBSCHED_NAME"), "");
	assert_string_equal(env_of(&p, "JOBSCHED_SLOT"), "2024-03-31T01:00:00.500Z");
	assert_string_equal(env_of(&p, "JOBSCHED_SLOT_MS"), "1711846800500");
	assert_string_equal(env_of(&p, "JOBSCHED_NODE"), "n1");
	assert_string_equal(p.spec.env.v[0], "A=b=c");
	assert_int_equal(p.spec.uid, 1000);
	assert_string_equal(p.spec.owner, "ann");
	assert_int_equal(p.run, 17);
	assert_int_equal(p.attempt, 2);
	assert_int_equal(p.fence, 5);
	for (size_t i = 0; i < p.vars.n; i++)
		assert_true(start_plan_var_valid(p.vars.v[i]));
	r.attempt = 3;
	r.fence = 6;
	start_plan_build(&other, &(struct start_plan_source){&r, &s, "n2", "abc", NULL});
	assert_string_equal(env_of(&p, "JOBSCHED_KEY"), env_of(&other, "JOBSCHED_KEY"));
	start_plan_done(&p);
	start_plan_done(&other);
	job_spec_done(&s);
}

static void segments_are_filled_evenly(void **state)
{
	int count[SEGMENTS] = {};

	(void)state;
	for (uint64_t i = 0; i < 64000; i++)
		count[job_segment(i)]++;
	for (int i = 0; i < SEGMENTS; i++)
		assert_in_range(count[i], 850, 1150);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(every_state_name_reads_back),
		TEST(a_final_run_moves_no_more),
		TEST(names_are_checked),
		TEST(the_field_table_is_whole),
		TEST(a_job_has_one_command),
		TEST(a_command_the_kernel_would_refuse_is_refused_here),
		TEST(a_plan_tells_the_command_which_slot_it_is_for),
		TEST(segments_are_filled_evenly),
	};

	return RUN_TESTS(tests);
}
