/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of changed definitions: merging, differences, editable lines, operands of set. */
#include "unit/unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_diff.h"
#include "core/job/job_fields.h"
#include "jobctl/defs/crontab_write.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/spec_form.h"
#include "jobctl/spec/spec_patch.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <string.h>

static void read_spec(struct job_spec *s, const char *text)
{
	struct err e = {};

	job_spec_init(s);
	if (!spec_json_from_text(text, s, &e))
		fail_msg("%s: %s", text, e.msg);
}

/* Merges 'patch' into 'before'; returns JSON text. */
static char *merged(const char *before, const char *patch, struct err *e)
{
	AUTO_DONE(job_spec) s;
	json_auto_t *p = json_loads(patch, 0, NULL);

	read_spec(&s, before);
	assert_non_null(p);
	return spec_json_merge(p, &s, e) ? spec_json_to_text(&s) : NULL;
}

static void a_job_is_written_as_the_line_that_means_it(void **state)
{
	static const struct {
		const char *spec, *line; /* line NULL: not expressed */
	} rows[] = {
		{"{\"command\":[\"x\"],\"schedule\":[\"0 5 * * WED\"]}", "0 5 * * 3 x\n"},
		{"{\"command\":[\"x\"],\"schedule\":[\"0 5 * MAR THU\"]}", "0 5 * 3 4 x\n"},
		{"{\"command\":[\"x\"],\"schedule\":[\"0 5 * JUL,AUG FRI-SUN\"]}", "0 5 * 7,8 5-7 x\n"},
		{"{\"command\":[\"x\"],\"schedule\":[\"@reboot\"]}", "@reboot x\n"},
		{"{\"command\":[\"x\"],\"schedule\":[\"0 5 * * *\",\"0 6 * * *\"]}", "0 5 * * * x\n0 6 * * * x\n"},
		{"{\"command\":[\"x\"],\"schedule\":[\"0 5 * * 5L\"]}", NULL},
		{"{\"command\":[\"x\"],\"schedule\":[\"0 5 15W * *\"]}", NULL},
		{"{\"command\":[\"x\"],\"schedule\":[\"0 0 5 * * *\"]}", NULL},
		{"{\"command\":[\"x\"],\"schedule\":[\"PT10S since 2026-11-18T13:47:52Z\"]}", NULL},
		{"{\"script\":\"date +%F\",\"schedule\":[\"0 5 * * *\"]}", "0 5 * * * date +\\%F\n"},
		{"{\"script\":\"a\\\\b\",\"schedule\":[\"0 5 * * *\"]}", "0 5 * * * a\\b\n"},
		{"{\"script\":\"a\\\\\\\\b\",\"schedule\":[\"0 5 * * *\"]}", "0 5 * * * a\\\\\\\\b\n"},
		{"{\"script\":\"a\\\\%b\\\\\",\"schedule\":[\"0 5 * * *\"]}", "0 5 * * * a\\\\\\%b\\\n"},
		{"{\"script\":\"cat\",\"stdin\":\"a\\nb%\\\\c\\n\",\"schedule\":[\"0 5 * * *\"]}", "0 5 * * * cat%a%b\\%\\c%\n"},
		{"{\"script\":\"cat\",\"stdin\":\"no newline\",\"schedule\":[\"0 5 * * *\"]}", NULL},
		{"{\"script\":\"cat\",\"stdin\":\"a\\\\\\nb\\n\",\"schedule\":[\"0 5 * * *\"]}", NULL},
		{"{\"script\":\"*x\",\"schedule\":[\"0 5 * * *\"]}", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		struct crontab_write w = {.zone = "Etc/UTC"};
		AUTO_DONE(job_spec) s;
		AUTO_DONE(buf) out = {};

		read_spec(&s, rows[i].spec);
		s.umask = job_field_find("umask")->preset; /* not that of an old stored job */
		crontab_write_job(&w, &s, &out);
		if (rows[i].line)
			assert_string_equal(out.data, rows[i].line);
		else
			assert_non_null(strstr(out.data, "not in this crontab"));
		assert_int_equal(w.refused, rows[i].line ? 0 : 1);
	}
}

static void a_patch_is_merged_into_a_definition(void **state)
{
	static const struct {
		const char *before, *patch, *after;
	} rows[] = {
		{"{\"command\":[\"a\"]}", "{}", "{\"command\":[\"a\"]}"},
		{"{\"command\":[\"a\"]}", "{\"priority\":3}",
			"{\"command\":[\"a\"],\"priority\":3}"},
		{"{\"priority\":3}", "{\"priority\":null}", "{}"},
		{"{\"umask\":\"027\"}", "{\"umask\":null}", "{\"umask\":\"022\"}"},
		{"{\"env\":{\"A\":\"1\",\"B\":\"2\"}}", "{\"env\":{\"A\":null,\"C\":\"3\"}}",
			"{\"env\":{\"B\":\"2\",\"C\":\"3\"}}"},
		{"{\"env\":{\"A\":\"1\"}}", "{\"env\":null}", "{}"},
		{"{\"env\":{\"A\":\"1\"}}", "{\"env_b64\":{\"A\":\"/w==\"}}",
			"{\"env_b64\":{\"A\":\"/w==\"}}"},
		{"{\"command\":[\"a\"]}", "{\"script\":\"x\"}", "{\"script\":\"x\"}"},
		{"{\"script\":\"x\"}", "{\"command\":[\"a\"]}", "{\"command\":[\"a\"]}"},
		{"{\"when\":[\"load<2\"]}", "{\"when\":[\"io<5\"]}", "{\"when\":[\"io<5\"]}"},
		{"{\"stdin\":\"abc\"}", "{\"stdin_b64\":\"AAE=\"}", "{\"stdin_b64\":\"AAE=\"}"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		struct err e = {};
		AUTO_TEXT got = merged(rows[i].before, rows[i].patch, &e);

		if (!text_equal(got, rows[i].after))
			fail_msg("%s with %s is %s (%s)", rows[i].before, rows[i].patch,
				got ? got : "refused", e.msg);
	}
}

static void an_invalid_patch_names_the_member(void **state)
{
	static const char *const bad[][2] = {{"{\"priority\":\"x\"}", "priority"},
		{"{\"nope\":1}", "nope"}, {"{\"nope\":null}", "nope"},
		{"{\"env\":{\"1x\":\"y\"}}", "env"}, {"{\"env\":{\"A\":1}}", "env"},
		{"{\"env\":[\"A=1\"]}", "env"}};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		struct err e = {};
		AUTO_TEXT got = merged("{\"command\":[\"a\"]}", bad[i][0], &e);

		assert_null(got);
		assert_int_equal(e.kind, ERR_INVALID);
		assert_string_equal(e.field, bad[i][1]);
	}
}

static void differences_do_not_show_values_of_variables(void **state)
{
	AUTO_DONE(job_spec) a;
	AUTO_DONE(job_spec) b;
	AUTO_DONE(buf) words = {};
	AUTO_DONE(buf) none = {};

	(void)state;
	read_spec(&a,
		"{\"command\":[\"a\"],\"env\":{\"P\":\"secret\",\"Q\":\"1\"},\"tz\":\"UTC\",\"timeout\":90}");
	read_spec(&b,
		"{\"command\":[\"b\"],\"env\":{\"P\":\"hidden\",\"R\":\"1\"},\"priority\":5,\"timeout\":90,"
		"\"notify\":[\"webhook:https://u:pw@h/\"]}");
	job_diff_words(&a, &b, &words);
	assert_string_equal(words.data,
		"command changed, tz 'UTC' → default, env.P changed, env.R added, env.Q removed, "
		"priority 0 → 5, notify changed");
	job_diff_words(&a, &a, &none);
	assert_int_equal(none.len, 0);
	assert_false(job_diff_slots_equal(&a, &b));
	assert_true(job_diff_slots_equal(&a, &a));
}

/* ---- editable lines ---- */

static uint64_t seed = 88172645463325252;

static uint64_t draw(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static char *random_text(size_t max, bool bytes)
{
	static const char *const pieces[] = {"a", " ", "\n", "\t", "=", "#", "\"", "\\", "<<END",
		"END", "\nEND\n", "ü", "'", "{", "}", "\r", "\x01", "é\n", "[", "  "};
	AUTO_DONE(buf) b = {};

	for (size_t i = draw(max); i > 0; i--)
		buf_str(&b, bytes && draw(12) == 0 ? "\xff" : pieces[draw(ELEMENTS(pieces))]);
	return buf_steal(&b);
}

/* A random value that the field accepts. */
static void random_field(struct job_spec *s, const struct job_field *f)
{
	void *at = (char *)s + f->offset;
	AUTO_TEXT text = random_text(12, f->bytes);

	switch (f->type) {
	case FIELD_BLOB:
		((struct blob *)at)->len = strlen(text);
		((struct blob *)at)->data = STEAL(text);
		break;
	case FIELD_TEXT:
		if (!f->check && *text && (int64_t)strlen(text) >= f->min)
			*(char **)at = STEAL(text);
		break;
	case FIELD_LIST:
		for (size_t i = draw(4); !f->check && strcmp(f->name, "command") != 0 && i > 0; i--)
			strv_take(at, random_text(8, f->bytes));
		break;
	case FIELD_MAP:
		for (size_t i = draw(4);
			strcmp(f->name, "limits") != 0 && strcmp(f->name, "secrets") != 0 && i > 0;
			i--)
			strv_take(at, xprintf("%c%zu=%s", (char)('a' + draw(20)), i, text));
		break;
	case FIELD_TIME:
		*(int64_t *)at = (int64_t)draw(4000000000) * USEC_SEC;
		break;
	default:
		*(int64_t *)at = f->min + (int64_t)draw((uint64_t)(f->max - f->min) + 1);
	}
}

/* The fields of a call exclude a command. */
static bool is_drawn(const struct job_field *f)
{
	static const char *const omitted[] = {"template", "http", "url", "headers", "body", "expect_status", "expect_body",
		"expect_size", "on_410", "http_async", "sign", "tls_ca", "tls_cert", "tls_key", "kafka",
		"message_key", "message", "kafka_tls", "sasl", "sasl_user", "sasl_password",
		"lambda", "region", "lambda_event"};

	for (size_t i = 0; i < ELEMENTS(omitted); i++)
		if (strcmp(f->name, omitted[i]) == 0)
			return false;
	return true;
}

static void random_spec(struct job_spec *s)
{
	job_spec_init(s);
	for (size_t i = 0; i < job_fields_count; i++)
		if (is_drawn(&job_fields[i]) && draw(2))
			random_field(s, &job_fields[i]);
	if (!s->checkpoint)
		s->state_size = 0; /* of the directory of a checkpoint */
	free(STEAL(s->script));
	strv_done(&s->command);
	strv_done(&s->params); /* parameters must occur in the command */
	if (draw(2)) {
		s->script = random_text(30, true);
		if (!s->script[strspn(s->script, " \t\n")]) {
			free(s->script);
			s->script = xstrdup("x\n");
		}
		return;
	}
	strv_add(&s->command, "prog");
	for (size_t i = draw(5); i > 0; i--)
		strv_take(&s->command, random_text(6, true));
}

static void a_definition_written_as_lines_is_read_back_equal(void **state)
{
	(void)state;
	for (int i = 0; i < 3000; i++) {
		AUTO_DONE(job_spec) a;
		AUTO_DONE(job_spec) b;
		AUTO_DONE(buf) text = {};
		struct err e = {};

		random_spec(&a);
		job_spec_init(&b);
		spec_form_write(&a, NULL, &text);
		spec_form_write_defaults(&a, &text);
		if (!spec_form_read(text.data, &b, &e))
			fail_msg("round %d: %s\n%s", i, e.msg, text.data);
		for (size_t k = 0; k < job_fields_count; k++)
			if (!job_diff_field_equal(&job_fields[k], &a, &b))
				fail_msg("round %d: '%s' is another\n%s", i, job_fields[k].name,
					text.data);
	}
}

static void a_patch_turns_one_definition_into_the_other(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		AUTO_DONE(job_spec) a;
		AUTO_DONE(job_spec) b;
		json_auto_t *patch = NULL;
		struct err e = {};

		random_spec(&a);
		random_spec(&b);
		for (size_t k = 0; k < job_fields_count;
			k++) /* JSON has durations as doubles, so microseconds may differ */
			if (job_fields[k].type == FIELD_DURATION)
				*(int64_t *)((char *)&b + job_fields[k].offset) /= USEC_SEC,
					*(int64_t *)((char *)&b + job_fields[k].offset) *= USEC_SEC;
		patch = spec_patch(&a, &b);
		if (!spec_json_merge(patch, &a, &e))
			fail_msg("round %d: %s", i, e.msg);
		for (size_t k = 0; k < job_fields_count; k++)
			if (!job_diff_field_equal(&job_fields[k], &a, &b))
				fail_msg("round %d: '%s' is another", i, job_fields[k].name);
	}
}

static void an_invalid_text_names_its_line(void **state)
{
	static const char *const bad[] = {"command = [\"a\"]\npriority = x\n",
		"command = [\"a\"]\nnope = 1\n", "command = a b\nx", "command = [\"a\"]\nwhat",
		"script = <<END\nabc\n", "command = [\"a\"]\nenv = 1\n",
		"command = [\"a\"]\nstdin_b64 = !\n", "command = [\"a\"]\nname = \"x\n",
		"command = [\"a\"]\npriority = 1\npriority = 2\n", "priority = 3\n",
		"command = [\"a\"]\ntemplate = t\n", "command = [\"a\"]\nenv.A = 1\nenv.A = 2\n"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		AUTO_DONE(job_spec) s;
		struct err e = {};

		job_spec_init(&s);
		if (spec_form_read(bad[i], &s, &e))
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(e.kind, ERR_INVALID);
		if (strchr(bad[i], '\n') && i != 9)
			assert_non_null(strstr(e.msg, "line "));
	}
}

/* ---- operands of set ---- */

#define WORDS(...) ((char *[]){__VA_ARGS__})
#define PATCH(...) patch_text(WORDS(__VA_ARGS__), ELEMENTS(WORDS(__VA_ARGS__)))

static char *patch_text(char *const *words, size_t n)
{
	json_auto_t *patch = NULL;
	AUTO_DONE(buf) out = {};
	struct err e = {};

	if (!spec_patch_from_words(words, n, &patch, &e))
		return xprintf("refused: %s", e.msg);
	json_value_write(patch, &out);
	return buf_steal(&out);
}

static void operands_of_set_become_a_patch(void **state)
{
	AUTO_TEXT plain =
		PATCH((char *)"priority=5", (char *)"output-limit=10K", (char *)"dst_fold=last");
	AUTO_TEXT reset =
		PATCH((char *)"priority=", (char *)"env.A=", (char *)"env.B=x=y", (char *)"tags=");
	AUTO_TEXT when = PATCH((char *)"cron=0 2 * * *", (char *)"cron=0 3 * * *");
	AUTO_TEXT every = PATCH((char *)"every=15m", (char *)"param.host=db1");
	AUTO_TEXT command = PATCH((char *)"retries=2", (char *)"--", (char *)"a", (char *)"b=c");
	AUTO_TEXT script = PATCH((char *)"--", (char *)"a | b");
	AUTO_TEXT bytes = PATCH((char *)"env.A=\xff");

	(void)state;
	assert_string_equal(plain, "{\"dst_fold\":\"last\",\"output_limit\":10240,\"priority\":5}");
	assert_string_equal(reset,
		"{\"env\":{\"A\":null,\"B\":\"x=y\"},\"priority\":null,\"tags\":null}");
	assert_string_equal(when, "{\"schedule\":[\"0 2 * * *\",\"0 3 * * *\"]}");
	assert_string_equal(every, "{\"params\":{\"host\":\"db1\"},\"schedule\":[\"every 15m\"]}");
	assert_string_equal(command, "{\"command\":[\"a\",\"b=c\"],\"retries\":2}");
	assert_string_equal(script, "{\"script\":\"a | b\"}");
	assert_string_equal(bytes, "{\"env_b64\":{\"A\":\"/w==\"}}");
}

static void invalid_operands_of_set_are_refused(void **state)
{
	static char *const bad[] = {(char *)"prio=1", (char *)"priority", (char *)"priority=high",
		(char *)"env=A=1", (char *)"command=x", (char *)"schedule=", (char *)"foo.bar=1",
		(char *)"--dry-run", (char *)"in=soon", (char *)"--"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		AUTO_TEXT got = patch_text(&bad[i], 1);

		if (!text_starts(got, "refused: "))
			fail_msg("'%s' was taken as %s", bad[i], got);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_job_is_written_as_the_line_that_means_it),
		TEST(a_patch_is_merged_into_a_definition),
		TEST(an_invalid_patch_names_the_member),
		TEST(differences_do_not_show_values_of_variables),
		TEST(a_definition_written_as_lines_is_read_back_equal),
		TEST(a_patch_turns_one_definition_into_the_other),
		TEST(an_invalid_text_names_its_line),
		TEST(operands_of_set_become_a_patch),
		TEST(invalid_operands_of_set_are_refused),
	};

	return RUN_TESTS(tests);
}
