/* SPDX-License-Identifier: Apache-2.0 */
/* Orders: one encoding each, nothing taken that is not exactly that, nothing of a job left out. */
#include "core/start/exec_spec_build.h"
#include "unit/unit.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/job/job.h"
#include "core/start/exec_spec.h"
#include "core/job/warrant.h"
#include <string.h>

static void sample(struct exec_spec *o)
{
	exec_spec_init(o);
	o->uid = 1000;
	o->owner = xstrdup("ann");
	strv_add(&o->argv, "/bin/sh");
	strv_add(&o->argv, "");
	strv_add(&o->argv, "\x01\xff\n");
	o->tz = xstrdup("Europe/Berlin");
	strv_add(&o->env, "A=1");
	strv_add(&o->env, "EMPTY=");
	strv_add(&o->params, "x=y");
	o->cwd = xstrdup("/tmp");
	o->umask = 022;
	o->stdin_hash = (struct blob){xcalloc(1, 33), 32};
	strv_add(&o->notices, "echo hi");
}

static void an_order_comes_back_as_it_went(void **state)
{
	AUTO_DONE(exec_spec) o;
	AUTO_DONE(exec_spec) got = {};
	AUTO_DONE(buf) b = {};
	AUTO_DONE(buf) again = {};
	struct err e = {};

	(void)state;
	sample(&o);
	assert_true(exec_spec_encode(&o, &b, &e));
	if (!exec_spec_parse(&got, b.data, b.len, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(got.uid, 1000);
	assert_string_equal(got.owner, "ann");
	assert_int_equal(got.argv.n, 3);
	assert_string_equal(got.argv.v[2], "\x01\xff\n");
	assert_string_equal(got.tz, "Europe/Berlin");
	assert_string_equal(got.env.v[1], "EMPTY=");
	assert_string_equal(got.params.v[0], "x=y");
	assert_string_equal(got.cwd, "/tmp");
	assert_int_equal(got.umask, 022);
	assert_int_equal(got.stdin_hash.len, 32);
	assert_string_equal(got.notices.v[0], "echo hi");
	assert_true(exec_spec_encode(&got, &again, &e));
	assert_int_equal(again.len, b.len);
	assert_memory_equal(again.data, b.data, b.len);
}

static void an_order_that_is_changed_anywhere_is_another_or_none(void **state)
{
	AUTO_DONE(exec_spec) o;
	AUTO_DONE(buf) b = {};

	(void)state;
	sample(&o);
	assert_true(exec_spec_encode(&o, &b, NULL));
	for (size_t at = 0; at < b.len; at++)
		for (int bit = 0; bit < 8; bit++) {
			AUTO_DONE(exec_spec) got = {};
			AUTO_DONE(buf) again = {};

			b.data[at] ^= (char)(1 << bit);
			if (exec_spec_parse(&got, b.data, b.len, NULL)) { /* then these bytes are its one encoding */
				assert_true(exec_spec_encode(&got, &again, NULL));
				assert_int_equal(again.len, b.len);
				assert_memory_equal(again.data, b.data, b.len);
			}
			b.data[at] ^= (char)(1 << bit);
		}
}

static void a_part_of_an_order_is_another_order_or_none(void **state)
{
	AUTO_DONE(exec_spec) o;
	AUTO_DONE(buf) b = {};

	(void)state;
	sample(&o);
	assert_true(exec_spec_encode(&o, &b, NULL));
	for (size_t len = 0; len < b.len; len++) {
		AUTO_DONE(exec_spec) got = {};
		AUTO_DONE(buf) again = {};

		if (!exec_spec_parse(&got, b.data, len, NULL))
			continue; /* cut inside a record, or before what must be there */
		assert_true(exec_spec_encode(&got, &again, NULL));
		assert_int_equal(again.len, len);
	}
	assert_false(exec_spec_parse(&(struct exec_spec){}, b.data, 20, NULL));
}

/* Records by hand. */
static void record(struct buf *b, unsigned tag, const void *data, size_t len)
{
	const unsigned char head[6] = {(unsigned char)tag, (unsigned char)(tag >> 8), (unsigned char)len,
		(unsigned char)(len >> 8), 0, 0};

	buf_add(b, head, 6);
	buf_add(b, data, len);
}
#define UID(n) 1, n "\0\0\0\0\0\0\0", 8
#define ANN 2, "ann", 3
#define TRUE 3, "true", 4

struct piece {
	unsigned tag;
	const char *data;
	size_t len;
};

static void whatever_has_a_second_form_is_refused(void **state)
{
	static const struct {
		bool right;
		struct piece pieces[6];
	} table[] = {
		{true, {{UID("\1")}, {ANN}, {TRUE}}},
		{true, {{UID("\0")}, {ANN}, {TRUE}}},              /* root is no default */
		{true, {{UID("\1")}, {ANN}, {TRUE}, {8, "\1\0\0\0\0\0\0\0", 8}}},
		{false, {{ANN}, {TRUE}}},                          /* nobody's */
		{false, {{UID("\1")}, {TRUE}}},
		{false, {{UID("\1")}, {ANN}}},
		{false, {{ANN}, {UID("\1")}, {TRUE}}},             /* out of order */
		{false, {{UID("\1")}, {UID("\1")}, {ANN}, {TRUE}}}, /* twice */
		{false, {{UID("\1")}, {ANN}, {ANN}, {TRUE}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {8, "\77\0\0\0\0\0\0\0", 8}}}, /* a default that is written */
		{false, {{UID("\1")}, {ANN}, {TRUE}, {8, "\1\0\0\0", 4}}},          /* a short number */
		{false, {{UID("\1")}, {ANN}, {TRUE}, {8, "\1\2\0\0\0\0\0\0", 8}}},  /* out of range */
		{false, {{1, "\xff\xff\xff\xff\xff\xff\xff\xff", 8}, {ANN}, {TRUE}}}, /* uid -1, as 64 bits */
		{false, {{1, "\xff\xff\xff\xff\0\0\0\0", 8}, {ANN}, {TRUE}}},       /* and as 32 */
		{false, {{UID("\1")}, {ANN}, {3, "", 0}}},                          /* an empty command */
		{false, {{UID("\1")}, {ANN}, {3, "tr\0e", 4}}},
		{false, {{UID("\1")}, {2, "a:b", 3}, {TRUE}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {4, "/etc/x", 6}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {4, "a/../../x", 9}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {5, "1A=b", 4}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {5, "=b", 2}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {5, "AB", 2}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {5, "JOBSCHED_RUN=1", 14}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {7, "tmp", 3}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {9, "short", 5}}},
		{false, {{UID("\1")}, {ANN}, {TRUE}, {999, "x", 1}}},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		AUTO_DONE(exec_spec) o = {};
		AUTO_DONE(buf) b = {};

		for (const struct piece *p = table[i].pieces; p->tag; p++)
			record(&b, p->tag, p->data, p->len);
		if (exec_spec_parse(&o, b.data, b.len, NULL) != table[i].right)
			fail_msg("row %zu", i);
	}
}

static void lists_have_their_bounds(void **state)
{
	AUTO_DONE(exec_spec) o;
	AUTO_DONE(buf) b = {};

	(void)state;
	sample(&o);
	for (int i = 0; i < 128; i++)
		strv_add(&o.env, "X=1");
	assert_false(exec_spec_encode(&o, &b, NULL));
}

static void the_table_is_in_the_order_of_its_tags(void **state)
{
	(void)state;
	for (size_t i = 1; i < exec_spec_fields_count; i++)
		assert_true(exec_spec_fields[i].tag > exec_spec_fields[i - 1].tag);
}

static void the_exec_spec_contains_all_properties_of_a_job(void **state)
{
	AUTO_DONE(job_spec) s;
	AUTO_DONE(exec_spec) o = {};
	AUTO_DONE(strv) given = {};
	unsigned char hash[SHA256_LEN];
	struct sha256 h;

	(void)state;
	job_spec_init(&s);
	strv_add(&s.command, "backup");
	strv_add(&s.command, "{host}");
	strv_add(&s.params, "host=a");
	strv_add(&given, "host=b");
	strv_add(&s.env, "A=1");
	strv_add(&s.notify, "mail:ann@example.org");
	strv_add(&s.notify, "exec:wall failed");
	s.tz = xstrdup("UTC");
	s.cwd = xstrdup("/srv");
	s.umask = 027;
	s.stdin_data = (struct blob){xstrdup("in"), 2};
	exec_spec_build(&o, &(struct exec_spec_source){.spec = &s, .uid = 5, .owner = "ann", .params = &given});
	assert_string_equal(o.argv.v[1], "b");
	assert_string_equal(o.params.v[0], "host=b");
	assert_string_equal(o.env.v[0], "A=1");
	assert_string_equal(o.tz, "UTC");
	assert_string_equal(o.cwd, "/srv");
	assert_int_equal(o.umask, 027);
	assert_int_equal(o.uid, 5);
	assert_string_equal(o.owner, "ann");
	assert_int_equal(o.notices.n, 1);
	assert_string_equal(o.notices.v[0], "wall failed");
	sha256_init(&h);
	sha256_add(&h, "in", 2);
	sha256_end(&h, hash);
	assert_memory_equal(o.stdin_hash.data, hash, SHA256_LEN);
}

static void an_approved_order_has_the_identity_and_the_name_of_its_job(void **state)
{
	const unsigned char job[WARRANT_JOB_LEN] = {1, 2, 3}, warrant[WARRANT_LEN] = {4};
	AUTO_DONE(job_spec) s;
	AUTO_DONE(exec_spec) plain = {};
	AUTO_DONE(exec_spec) o = {};
	AUTO_DONE(buf) b = {};
	char text[WARRANT_HEX];

	(void)state;
	job_spec_init(&s);
	strv_add(&s.command, "true");
	s.name = xstrdup("backup");
	s.warrant = xstrdup(warrant_print(NULL, warrant, text)); /* of the first version */
	exec_spec_build(&plain, &(struct exec_spec_source){.spec = &s, .uid = 5, .owner = "ann"});
	assert_null(plain.name);
	assert_null(plain.job.data);
	free(s.warrant);
	s.warrant = xstrdup(warrant_print(job, warrant, text));
	exec_spec_build(&o, &(struct exec_spec_source){.spec = &s, .uid = 5, .owner = "ann"});
	assert_string_equal(o.name, "backup");
	assert_memory_equal(o.job.data, job, WARRANT_JOB_LEN);
	blob_done(&o.job);
	assert_false(exec_spec_encode(&o, &b, NULL)); /* a name goes with an identity only */
}

/* The words after "/bin/sh -c PROGRAM jobsched SCRIPT", joined by '|'; NULL: /bin/sh runs the script itself. */
static char *interpreter(const char *script)
{
	AUTO_DONE(job_spec) s;
	AUTO_DONE(exec_spec) o = {};
	AUTO_DONE(buf) words = {};

	job_spec_init(&s);
	s.script = xstrdup(script);
	exec_spec_build(&o, &(struct exec_spec_source){.spec = &s, .uid = 5, .owner = "ann"});
	assert_string_equal(o.argv.v[0], "/bin/sh");
	if (o.argv.n == 3) {
		assert_string_equal(o.argv.v[2], script);
		return NULL;
	}
	assert_string_equal(o.argv.v[4], script);
	for (size_t i = 5; i < o.argv.n; i++)
		buf_printf(&words, "%s%s", i > 5 ? "|" : "", o.argv.v[i]);
	return buf_steal(&words);
}

static void a_script_is_run_by_the_program_of_its_first_line(void **state)
{
	static const struct {
		const char *script, *words;
	} cases[] = {
		{"echo", NULL}, {"#!/bin/sh\necho", NULL}, {"#! /bin/sh \necho", NULL}, {"#!\necho", NULL}, {"# !/bin/bash\n", NULL},
		{"\n#!/bin/bash\n", NULL}, {"#!/bin/sh -e\necho", "/bin/sh|-e"}, {"#!/bin/bash\n", "/bin/bash"}, {"#!/bin/bash", "/bin/bash"},
		{"#!/bin/shx\n", "/bin/shx"}, {"#! /usr/bin/env  -S python3 -u \r\nx", "/usr/bin/env|-S python3 -u"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_TEXT words = interpreter(cases[i].script);

		assert_true(text_equal(words, cases[i].words));
	}
}

static void a_script_that_was_approved_for_the_shell_stays_so(void **state)
{
	const unsigned char warrant[WARRANT_LEN] = {4};
	AUTO_DONE(job_spec) s;
	AUTO_DONE(exec_spec) o = {};
	char text[WARRANT_HEX];

	(void)state;
	job_spec_init(&s);
	s.script = xstrdup("#!/bin/bash\ntrue\n");
	s.warrant = xstrdup(warrant_print(NULL, warrant, text));
	exec_spec_build(&o, &(struct exec_spec_source){.spec = &s, .uid = 5, .owner = "ann"});
	assert_int_equal(o.argv.n, 3);
	assert_string_equal(o.argv.v[2], s.script);
}

static void the_descriptor_of_a_script_is_no_secret(void **state)
{
	AUTO_DONE(job_spec) s;
	struct err e = {};

	(void)state;
	job_spec_init(&s);
	s.script = xstrdup("#!/bin/bash\ntrue\n");
	for (int i = 0; i < 6; i++)
		strv_take(&s.secrets, xprintf("S%d=file:/s", i));
	assert_true(job_spec_check(&s, &e));
	strv_add(&s.secrets, "S6=file:/s");
	assert_false(job_spec_check(&s, &e));
	assert_string_equal(e.field, "secrets");
	free(s.script);
	s.script = xstrdup("#!/bin/sh\ntrue\n");
	assert_true(job_spec_check(&s, &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_order_comes_back_as_it_went),
		TEST(an_order_that_is_changed_anywhere_is_another_or_none),
		TEST(a_part_of_an_order_is_another_order_or_none),
		TEST(whatever_has_a_second_form_is_refused),
		TEST(lists_have_their_bounds),
		TEST(the_table_is_in_the_order_of_its_tags),
		TEST(the_exec_spec_contains_all_properties_of_a_job),
		TEST(an_approved_order_has_the_identity_and_the_name_of_its_job),
		TEST(a_script_is_run_by_the_program_of_its_first_line),
		TEST(a_script_that_was_approved_for_the_shell_stays_so),
		TEST(the_descriptor_of_a_script_is_no_secret),
	};

	return RUN_TESTS(tests);
}
