/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of parameters: expansion, refusals, and values as single arguments. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/params.h"
#include "core/start/start_plan.h"
#include "core/job/run.h"
#include "unit/unit.h"
#include "wire/params_json.h"
#include <string.h>

static void fill(struct strv *v, const char *const *words)
{
	for (; *words; words++)
		strv_add(v, *words);
}
#define LIST(v, ...) fill(&(v), (const char *const[]){__VA_ARGS__, NULL})

static char *expanded(const char *word, const struct strv *params)
{
	AUTO_DONE(strv) in = {};
	AUTO_DONE(strv) out = {};

	strv_add(&in, word);
	params_expand(&in, params, &out);
	assert_int_equal(out.n, 1);
	return xstrdup(out.v[0]);
}

static void only_braces_around_a_name_are_replaced(void **state)
{
	static const struct {
		const char *word, *becomes;
	} rows[] = {
		{"{host}", "db1"},
		{"--host={host}/{days}.tar", "--host=db1/7.tar"},
		{"{{host}", "{host}"},
		{"{{{host}", "{db1"},
		{"{}", "{}"},
		{"{ host }", "{ host }"},
		{"{\"a\":1}", "{\"a\":1}"},
		{"{host", "{host"},
		{"host}", "host}"},
		{"{host}}", "db1}"},
		{"{empty}", ""},
		{"{1x}", "{1x}"},
		{"{a{host}", "{adb1"},
		{"", ""},
	};
	AUTO_DONE(strv) params = {};

	(void)state;
	LIST(params, "host=db1", "days=7", "empty=");
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_TEXT got = expanded(rows[i].word, &params);

		assert_string_equal(got, rows[i].becomes);
	}
}

static void values_are_not_expanded_again(void **state)
{
	AUTO_DONE(strv) params = {};
	AUTO_TEXT got = NULL;

	(void)state;
	LIST(params, "a={b}{{", "b={a}");
	got = expanded("{a}-{b}", &params);
	assert_string_equal(got, "{b}{{-{a}");
}

static void without_parameters_braces_are_kept(void **state)
{
	static const struct strv none = {};
	AUTO_TEXT got = expanded("{{x}} {print}", &none);
	struct job_spec s;

	(void)state;
	assert_string_equal(got, "{{x}} {print}");
	job_spec_init(&s);
	LIST(s.command, "awk", "{print}", "{{");
	assert_true(job_spec_check(&s, NULL));
	job_spec_done(&s);
}

static void hostile_values_stay_one_argument(void **state)
{
	static const char *const values[] = {"'; rm -rf / #", "\"$(id)\"", "a\nb\n", "--help", "", "\xff\xfe", "{x}", "$HOME `id`"};
	struct run r = {.id = 1, .job = 2};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(values); i++) {
		AUTO_DONE(job_spec) s;
		AUTO_DONE(start_plan) p = {};
		AUTO_TEXT variable = xprintf("x=%s", values[i]);
		bool found = false;

		job_spec_init(&s);
		LIST(s.command, "prog", "{x}", "end");
		strv_take(&s.params, xprintf("x=%s", values[i]));
		start_plan_build(&p, &(struct start_plan_source){&r, &s, "n", "s", NULL});
		assert_int_equal(p.spec.argv.n, 3);
		assert_string_equal(p.spec.argv.v[1], values[i]);
		assert_string_equal(p.spec.argv.v[2], "end");
		for (size_t k = 0; k < p.spec.params.n; k++)
			found = found || strcmp(p.spec.params.v[k], variable) == 0;
		assert_true(found);
	}
}

static void values_of_a_run_replace_those_of_its_job(void **state)
{
	struct run r = {.id = 1, .job = 2};
	AUTO_DONE(job_spec) s;
	AUTO_DONE(start_plan) p = {};
	AUTO_DONE(strv) given = {};

	(void)state;
	job_spec_init(&s);
	LIST(s.command, "backup", "{host}", "{days}");
	LIST(s.params, "host=db1", "days=7");
	LIST(given, "host=db2", "gone=1");
	start_plan_build(&p, &(struct start_plan_source){.run = &r, .spec = &s, .node = "n", .store_id = "s",
		.params = &given});
	assert_string_equal(p.spec.argv.v[1], "db2");
	assert_string_equal(p.spec.argv.v[2], "7");
}

static void a_script_is_not_expanded_and_gets_the_environment(void **state)
{
	struct run r = {.id = 1, .job = 2};
	AUTO_DONE(job_spec) s;
	AUTO_DONE(start_plan) p = {};
	struct err e = {};

	(void)state;
	job_spec_init(&s);
	s.script = xstrdup("echo \"${x}\" {y} $JOBSCHED_PARAM_x");
	LIST(s.params, "x=1");
	assert_true(job_spec_check(&s, &e));
	start_plan_build(&p, &(struct start_plan_source){&r, &s, "n", "s", NULL});
	assert_string_equal(p.spec.argv.v[2], s.script);
	free(s.script);
	s.script = xstrdup("echo {x}");
	assert_false(job_spec_check(&s, &e));
	assert_string_equal(e.field, "script");
	assert_non_null(strstr(e.msg, "$JOBSCHED_PARAM_x"));
}

static bool accepted(const char *const *words, struct err *e)
{
	AUTO_DONE(job_spec) s;

	job_spec_init(&s);
	fill(&s.command, words);
	LIST(s.params, "x=1", "days=7");
	return job_spec_check(&s, e);
}
#define COMMAND(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_parameter_is_refused_where_a_shell_would_read_it(void **state)
{
	struct err e = {};

	(void)state;
	assert_false(accepted(COMMAND("sh", "-c", "echo {x}"), &e));
	assert_non_null(strstr(e.msg, "shell"));
	assert_false(accepted(COMMAND("/usr/bin/env", "A=b", "bash", "-euc", "echo {x}"), NULL));
	assert_false(accepted(COMMAND("bash", "-o", "pipefail", "-c", "echo {x}"), NULL));
	assert_true(accepted(COMMAND("sh", "-c", "echo \"$1\"", "sh", "{x}"), NULL));
	assert_true(accepted(COMMAND("sh", "backup.sh", "{x}"), NULL));
	assert_true(accepted(COMMAND("prog", "-c", "{x}"), NULL));
	assert_true(accepted(COMMAND("sh", "-c", "echo {{x}"), NULL));
}

static void an_undeclared_parameter_is_refused_with_a_list_of_the_declared_ones(void **state)
{
	struct err e = {};

	(void)state;
	assert_false(accepted(COMMAND("backup", "{hots}"), &e));
	assert_string_equal(e.field, "command");
	assert_non_null(strstr(e.msg, "'hots'"));
	assert_non_null(strstr(e.msg, "x, days"));
	assert_true(accepted(COMMAND("backup", "{x}", "{}", "{a b}", "{{hots}"), NULL));
}

static void given_parameters_must_be_declared_and_those_without_default_must_be_given(void **state)
{
	AUTO_DONE(strv) declared = {};
	AUTO_DONE(strv) given = {};
	AUTO_DONE(strv) got = {};
	struct err e = {};

	(void)state;
	LIST(declared, "host", "days=7");
	assert_false(params_overlay(&declared, &given, &got, &e));
	assert_string_equal(e.field, "params");
	assert_non_null(strstr(e.msg, "missing"));
	assert_non_null(strstr(e.msg, "host, days"));
	LIST(given, "host=a=b");
	assert_true(params_overlay(&declared, &given, &got, &e));
	assert_string_equal(got.v[0], "host=a=b");
	assert_string_equal(got.v[1], "days=7");
	strv_done(&got);
	LIST(given, "day=8");
	assert_false(params_overlay(&declared, &given, &got, &e));
	assert_non_null(strstr(e.msg, "'day'"));
}

static void values_that_make_the_command_too_long_are_refused(void **state)
{
	AUTO_DONE(job_spec) s;
	AUTO_DONE(strv) given = {};
	AUTO_DONE(strv) got = {};
	char *value = xcalloc(32769, 1);
	struct err e = {};

	(void)state;
	memset(value, 'x', 32768);
	job_spec_init(&s);
	LIST(s.command, "prog", "{x}{x}{x}{x}{x}");
	LIST(s.params, "x=1");
	assert_true(job_spec_check(&s, &e));
	strv_take(&given, xprintf("x=%s", value));
	assert_false(params_of_run(&s, &given, &got, &e));
	assert_string_equal(e.field, "command");
	strv_take(&s.params, xprintf("x=%s", value));
	free(s.params.v[0]);
	s.params.v[0] = s.params.v[1];
	s.params.v[1] = NULL;
	s.params.n = 1;
	assert_false(job_spec_check(&s, NULL));
	free(value);
}

static void parameters_of_a_run_read_back_from_their_text(void **state)
{
	AUTO_DONE(strv) in = {};
	AUTO_DONE(strv) out = {};
	AUTO_TEXT text = NULL;
	struct err e = {};

	(void)state;
	LIST(in, "a=1", "b=\"\n\\ä=", "c=");
	text = params_json_to_text(&in, &e);
	assert_non_null(text);
	assert_true(params_json_from_text(text, &out, &e));
	assert_int_equal(out.n, 3);
	for (size_t i = 0; i < in.n; i++)
		assert_string_equal(param_value(&out, in.v[i], 1), in.v[i] + 2);
	assert_true(params_json_from_text(NULL, &out, &e));
	assert_false(params_json_from_text("{\"a b\":\"1\"}", &(struct strv){}, &e));
	assert_false(params_json_from_text("{\"a\":1}", &(struct strv){}, &e));
	LIST(in, "d=\xff");
	assert_null(params_json_to_text(&in, &e));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(only_braces_around_a_name_are_replaced),
		TEST(values_are_not_expanded_again),
		TEST(without_parameters_braces_are_kept),
		TEST(hostile_values_stay_one_argument),
		TEST(values_of_a_run_replace_those_of_its_job),
		TEST(a_script_is_not_expanded_and_gets_the_environment),
		TEST(a_parameter_is_refused_where_a_shell_would_read_it),
		TEST(an_undeclared_parameter_is_refused_with_a_list_of_the_declared_ones),
		TEST(given_parameters_must_be_declared_and_those_without_default_must_be_given),
		TEST(values_that_make_the_command_too_long_are_refused),
		TEST(parameters_of_a_run_read_back_from_their_text),
	};

	return RUN_TESTS(tests);
}
