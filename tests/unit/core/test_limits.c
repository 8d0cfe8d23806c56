/* SPDX-License-Identifier: Apache-2.0 */
/* Limits as people write them, and what of them cannot be had. */
#include "core/start/exec_spec_build.h"
#include "unit/unit.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/limits.h"
#include "core/start/exec_spec.h"
#include <string.h>
#include <sys/resource.h>

static void a_share_of_processors_is_a_percentage_or_a_number_of_them(void **state)
{
	static const struct {
		const char *text;
		int64_t percent; /* 0: refused */
	} table[] = {{"50%", 50}, {"1%", 1}, {"150%", 150}, {"1", 100}, {"1.5", 150}, {"0.25", 25}, {"0.05", 5}, {"2.50", 250},
		{"10000", 1000000}, {"1000000%", 1000000}, {"10000.01", 0}, {"0", 0}, {"0%", 0}, {"%", 0}, {"", 0}, {"1.", 0},
		{".5", 0}, {"1.555", 0}, {"-1", 0}, {"1.5%", 0}, {"1e3", 0}, {" 1", 0}, {"1.-5", 0}, {"1.+5", 0}, {"9223372036854775807", 0}};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		int64_t percent = 0;
		struct err e = {};
		bool ok = limit_cpu_parse(table[i].text, &percent, &e);

		if (ok != (table[i].percent != 0) || percent != table[i].percent)
			fail_msg("'%s' gives %lld", table[i].text, (long long)percent);
		assert_true(ok || strcmp(e.field, "cpu") == 0);
	}
}

static void io_is_served_by_best_effort_or_when_idle(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} table[] = {{"idle", LIMIT_IONICE_IDLE}, {"best-effort", 5}, {"best-effort:0", 1}, {"best-effort:7", 8}, {"best-effort:8", 0},
		{"best-effort:", 0}, {"best-effort7", 0}, {"realtime", 0}, {"", 0}, {"idle:1", 0}, {"1", 0}};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		int64_t value = 0;

		if (limit_ionice_parse(table[i].text, &value, NULL) != (table[i].value != 0) || value != table[i].value)
			fail_msg("'%s' gives %lld", table[i].text, (long long)value);
	}
}

static void a_limit_of_a_process_is_a_number_a_size_or_none(void **state)
{
	static const struct {
		const char *text, *plain; /* NULL: refused */
	} table[] = {{"nofile=1024", "nofile=1024"}, {"fsize=10M", "fsize=10485760"}, {"core=unlimited", "core=unlimited"},
		{"core=0", "core=0"}, {"stack=64K", "stack=65536"}, {"nofile=1K", NULL}, {"nofile=-1", NULL}, {"rtprio=1", NULL},
		{"nofile", NULL}, {"=1", NULL}, {"nofile=", NULL}, {"NOFILE=1", NULL}, {"nofiles=1", NULL}, {"cpu=60", "cpu=60"}};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		AUTO_TEXT plain = limit_resource_print(table[i].text);

		if (!text_equal(plain, table[i].plain))
			fail_msg("'%s' is '%s'", table[i].text, plain ? plain : "refused");
		assert_true(!plain || limit_resource_plain(plain));
	}
	assert_false(limit_resource_plain("fsize=10M")); /* an order has one form only */
	assert_false(limit_resource_plain("nofile=01"));
}

static void an_unsupported_limit_is_refused_by_name(void **state)
{
	AUTO_DONE(job_spec) s;
	struct err e = {};

	(void)state;
	job_spec_init(&s);
	assert_true(limits_check(&s, LIMIT_ALL, &e)); /* nothing is asked */
	s.pids = 5;
	assert_true(limits_check(&s, LIMIT_CPU | LIMIT_MEMORY, &e));
	assert_false(limits_check(&s, LIMIT_PIDS, &e));
	assert_string_equal(e.field, "pids");
	s.pids = 0;
	s.mem = 4096;
	assert_false(limits_check(&s, 0, &e));
	assert_string_equal(e.field, "mem");
	s.mem = LIMIT_MEMORY_MIN;
	assert_true(limits_check(&s, 0, &e));
}

static void an_order_has_them_in_numbers(void **state)
{
	AUTO_DONE(job_spec) s;
	AUTO_DONE(exec_spec) o;

	(void)state;
	job_spec_init(&s);
	s.mem = 1 << 20;
	s.cpu = xstrdup("1.5");
	s.pids = 7;
	s.nice = 3;
	s.ionice = xstrdup("idle");
	strv_add(&s.limits, "fsize=1K");
	exec_spec_build(&o, &(struct exec_spec_source){.spec = &s, .uid = 5, .owner = "a"});
	assert_int_equal(o.mem, 1 << 20);
	assert_int_equal(o.cpu, 150);
	assert_int_equal(o.pids, 7);
	assert_int_equal(o.nice, 3);
	assert_int_equal(o.ionice, LIMIT_IONICE_IDLE);
	assert_int_equal(o.limits.n, 1);
	assert_string_equal(o.limits.v[0], "fsize=1024");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_share_of_processors_is_a_percentage_or_a_number_of_them),
		TEST(io_is_served_by_best_effort_or_when_idle),
		TEST(a_limit_of_a_process_is_a_number_a_size_or_none),
		TEST(an_unsupported_limit_is_refused_by_name),
		TEST(an_order_has_them_in_numbers),
	};

	return RUN_TESTS(tests);
}
