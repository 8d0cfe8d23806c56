/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of crontabs as jobs: identities, environments and mail; anacrontab. */
#include "base/err.h"
#include "base/text.h"
#include "core/crontab/anacrontab.h"
#include "core/crontab/crontab.h"
#include "core/crontab/crontab_job.h"
#include "core/crontab/line_identity.h"
#include "core/crontab/table_job.h"
#include "core/job/job.h"
#include "unit/core/parse_table.h"
#include "unit/unit.h"
#include <string.h>

static void build(const char *text, bool system, struct table_jobs *ret)
{
	AUTO(crontab) *t = NULL;

	crontab_parse(text, strlen(text), &(struct crontab_options){.mode = CRONTAB_DEBIAN, .system = system}, &t);
	table_jobs_build(t, "/etc/crontab", "ann", ret);
}

static void a_line_keeps_its_identity_when_others_change(void **state)
{
	AUTO_DONE(table_jobs) before = {};
	AUTO_DONE(table_jobs) after = {};

	(void)state;
	build("0 5 * * * /usr/bin/report\n1 5 * * * true\n", false, &before);
	build("# new\nX=1\n1 5 * * * true\n0 5 * * * /usr/bin/report\n", false, &after);
	assert_int_equal(before.n, 2);
	assert_int_equal(after.n, 2);
	assert_memory_equal(before.v[0].identity, after.v[1].identity, WARRANT_JOB_LEN);
	assert_string_equal(before.v[0].spec.name, after.v[1].spec.name);
	assert_string_equal(before.v[0].spec.origin, "/etc/crontab:1");
	assert_string_equal(after.v[1].spec.origin, "/etc/crontab:4");
	assert_true(text_starts(before.v[0].spec.name, "report-"));
}

static void equal_lines_are_different_jobs(void **state)
{
	AUTO_DONE(table_jobs) l = {};

	(void)state;
	build("0 5 * * * true\n0 5 * * * true\n0 6 * * * true\n", false, &l);
	assert_int_equal(l.n, 3);
	assert_string_not_equal(l.v[0].spec.name, l.v[1].spec.name);
	assert_string_not_equal(l.v[0].spec.name, l.v[2].spec.name);
	assert_string_not_equal(l.v[1].spec.name, l.v[2].spec.name);
}

static void a_line_has_the_environment_and_the_mail_of_cron(void **state)
{
	AUTO_DONE(table_jobs) l = {};
	const struct job_spec *s;

	(void)state;
	build("SHELL=/bin/bash\nHOME=/srv\nMAILTO=a@b,c\nLOGNAME=eve\nA1=x\nA=y\n0 5 * * * root cat%one%two\n"
	      "MAILTO=\"\"\n0 6 * * * bin true\nMAILTO=\"a;b\"\n0 7 * * * bin true\n", true, &l);
	assert_int_equal(l.n, 3);
	s = &l.v[0].spec;
	assert_string_equal(l.v[0].user, "root");
	assert_string_equal(s->command.v[0], "/bin/bash");
	assert_string_equal(s->command.v[2], "cat");
	assert_string_equal(s->cwd, "/srv");
	assert_memory_equal(s->stdin_data.data, "one\ntwo\n", 8);
	assert_string_equal(s->env.v[0], "A=y"); /* by name: A before A1 */
	assert_string_equal(s->env.v[1], "A1=x");
	for (size_t i = 0; i < s->env.n; i++)
		assert_false(text_starts(s->env.v[i], "LOGNAME="));
	assert_int_equal(s->notify.n, 1);
	assert_string_equal(s->notify.v[0], "output:a@b,c");
	assert_int_equal(l.v[1].spec.notify.n, 0);
	assert_int_equal(l.v[2].spec.notify.n, 0); /* not an address */
	assert_string_equal(s->sandbox, "compat");
	assert_string_equal(s->overlap, "allow");
	assert_string_equal(s->catchup, "none");
}

static void a_table_that_cron_refuses_has_no_jobs(void **state)
{
	AUTO_DONE(table_jobs) l = {};

	(void)state;
	build("0 5 * * * true\n61 * * * * true\n", false, &l);
	assert_int_equal(l.n, 0);
}

static void anacrontab_is_read(void **state)
{
	static const char text[] = "# comment\nSHELL=/bin/sh\nSTART_HOURS_RANGE=3-22\nRANDOM_DELAY=45\n1\t5\tcron.daily\trun-parts /etc/cron.daily\n"
				   "7 25 cron.weekly  nice \\\nrun-parts\n@monthly 45 cron.monthly true\nx 1 y z\n1 2 ../up true\n1 2 three\n";
	AUTO(anacrontab) *t = NULL;
	AUTO_TEXT daily = NULL;
	AUTO_TEXT weekly = NULL;
	AUTO_TEXT monthly = NULL;

	(void)state;
	anacrontab_parse(text, sizeof(text) - 1, &t);
	assert_int_equal(t->n_entries, 3);
	assert_string_equal(t->entries[0].command, "run-parts /etc/cron.daily");
	assert_string_equal(t->entries[1].command, "nice run-parts");
	assert_int_equal(t->entries[2].line, 8);
	assert_int_equal(t->random_delay, 45);
	assert_int_equal(t->error_line, 9);
	daily = anacrontab_schedule(t, &t->entries[0], 20261117, 3600);
	weekly = anacrontab_schedule(t, &t->entries[1], 20261117, -5400);
	monthly = anacrontab_schedule(t, &t->entries[2], 20261031, 0);
	assert_string_equal(daily, "5 3 * * *");
	assert_string_equal(weekly, "R/2026-11-17T03:25:00-01:30/P7D");
	assert_string_equal(monthly, "45 3 28 * *");
}

static void a_job_of_anacrontab_keeps_the_stamp_of_anacron(void **state)
{
	static const char text[] = "1 5 cron.daily echo hello\n";
	AUTO_DONE(table_jobs) l = {};
	AUTO(anacrontab) *t = NULL;

	(void)state;
	anacrontab_parse(text, sizeof(text) - 1, &t);
	table_jobs_build_anacron(t, "/etc/anacrontab", &l);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0].user, "root");
	assert_string_equal(l.v[0].spec.command.v[5], "echo hello");
	assert_string_equal(l.v[0].spec.command.v[6], "cron.daily");
	assert_string_equal(l.v[0].spec.tags.v[1], "anacron=cron.daily");
	assert_string_equal(l.v[0].spec.catchup, "latest");
}

static void an_imported_entry_behaves_as_under_cron(void **state)
{
	AUTO(crontab) *t = parse("SHELL=/bin/bash\nHOME=/srv\nA-B=x\nC=y\n5 4 * * * awk '{print}'%in\n"
				 "SHELL=/bin/sh\n6 4 * * * date {x}\n");
	AUTO_DONE(job_spec) s;
	AUTO_DONE(job_spec) script;
	struct err e = {};

	(void)state;
	job_spec_init(&s);
	crontab_job(t, &t->entries[0], &s);
	crontab_job_complete(t, &t->entries[0], "Europe/Berlin", &s);
	assert_string_equal(s.schedule.v[0], "5 4 * * *");
	assert_string_equal(s.tz, "Europe/Berlin");
	assert_int_equal(s.command.n, 3);
	assert_string_equal(s.command.v[0], "/bin/bash");
	assert_string_equal(s.command.v[2], "awk '{print}'"); /* braces mean nothing: the job has no parameters */
	assert_string_equal(s.cwd, "/srv");
	assert_string_equal(s.sandbox, "compat");
	assert_string_equal(s.overlap, "allow");
	assert_string_equal(s.catchup, "none");
	assert_int_equal(s.stdin_data.len, 3);
	assert_int_equal(s.env.n, 4);
	assert_string_equal(s.env.v[0], "C=y");
	assert_string_equal(s.env.v[2], "PATH=/usr/bin:/bin");
	assert_true(job_spec_check(&s, &e));
	job_spec_init(&script);
	crontab_job(t, &t->entries[1], &script);
	crontab_job_complete(t, &t->entries[1], "UTC", &script);
	assert_string_equal(script.script, "date {x}");
	assert_int_equal(script.command.n, 0);
}

static void expect_name(const char *command, const char *word)
{
	static const unsigned char identity[] = {0x3f, 0xa9, 0xc1, 0xd2};
	AUTO_TEXT name = line_name(command, identity);
	AUTO_TEXT expected = xprintf("%s-3fa9c1d2", word);

	assert_string_equal(name, expected);
	assert_true(job_name_check(name, NULL));
}

static void a_job_is_named_after_its_program(void **state)
{
	(void)state;
	expect_name("X=1 /opt/b.sh a", "b.sh");
	expect_name("(x)", "x");
	expect_name("cd /srv && ./tidy", "tidy");
	expect_name("test -x /a || { cd /; /b/run all; }", "run");
	expect_name("cd / && run-parts --report /etc/cron.daily/", "cron.daily");
	expect_name("[ -x /usr/bin/x ] && nice sh /usr/lib/update", "update");
	expect_name("cd /x", "x");
	expect_name("", "line");
	expect_name("12 34", "line");
}

static void a_changed_schedule_keeps_the_identity(void **state)
{
	AUTO_DONE(table_jobs) before = {};
	AUTO_DONE(table_jobs) after = {};

	(void)state;
	build("0 5 * * * /usr/bin/report%x\n1 5 * * * /usr/bin/report%y\n", false, &before);
	build("9 9 * * * /usr/bin/report%x\n@daily /usr/bin/report%y\n", false, &after);
	assert_string_equal(before.v[0].spec.name, after.v[0].spec.name);
	assert_string_equal(before.v[1].spec.name, after.v[1].spec.name);
	assert_string_not_equal(before.v[0].spec.name, before.v[1].spec.name);
}

static void mail_goes_to_mailto_or_the_user(void **state)
{
	AUTO(crontab) *t = parse_cronie("1 * * * * a\nMAILTO=\"\"\n2 * * * * b\nMAILTO=ann,ops@example.org\n3 * * * * c\n"
					"4 * * * * -n d\nMAILTO=\"ann -x\"\n5 * * * * e\n");
	struct strv to[5] = {};

	(void)state;
	assert_int_equal(crontab_job_mail(t, &t->entries[0], "bob", &to[0]), CRONTAB_MAIL_ALL);
	assert_string_equal(to[0].v[0], "output:bob");
	assert_int_equal(crontab_job_mail(t, &t->entries[1], "bob", &to[1]), CRONTAB_MAIL_NONE);
	assert_int_equal(crontab_job_mail(t, &t->entries[2], "bob", &to[2]), CRONTAB_MAIL_ALL);
	assert_string_equal(to[2].v[0], "output:ann,ops@example.org");
	assert_int_equal(crontab_job_mail(t, &t->entries[3], "bob", &to[3]), CRONTAB_MAIL_FAILURES);
	assert_int_equal(to[3].n, 2);
	assert_string_equal(to[3].v[1], "mail:ops@example.org");
	assert_int_equal(crontab_job_mail(t, &t->entries[4], "bob", &to[4]), CRONTAB_MAIL_BAD);
	assert_int_equal(to[1].n + to[4].n, 0);
	for (size_t i = 0; i < ELEMENTS(to); i++)
		strv_done(&to[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_line_keeps_its_identity_when_others_change),
		TEST(equal_lines_are_different_jobs),
		TEST(a_line_has_the_environment_and_the_mail_of_cron),
		TEST(an_imported_entry_behaves_as_under_cron),
		TEST(a_job_is_named_after_its_program),
		TEST(a_changed_schedule_keeps_the_identity),
		TEST(mail_goes_to_mailto_or_the_user),
		TEST(a_table_that_cron_refuses_has_no_jobs),
		TEST(anacrontab_is_read),
		TEST(a_job_of_anacrontab_keeps_the_stamp_of_anacron),
	};

	return RUN_TESTS(tests);
}
