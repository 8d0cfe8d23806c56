/* SPDX-License-Identifier: Apache-2.0 */
/* Small parts of the daemon: run watches, configuration, rate meter, active runs, paths, the socket. */
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "daemon/loop/config.h"
#include "daemon/schedule/active_run.h"
#include "daemon/loop/run_watch.h"
#include "daemon/api/listener.h"
#include "daemon/notify/mail.h"
#include "daemon/schedule/rate_meter.h"
#include "unit/unit.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

struct ear {
	struct run_watch_set *run_watch_set;
	struct run_watch *watch;
	int heard;
	bool leave, nest;
};

static void listen_once(int64_t job, int64_t run, enum run_state s, void *arg)
{
	struct ear *ear = arg;

	ear->heard++;
	if (ear->leave)
		run_watch_free(STEAL(ear->watch));
	if (ear->nest) {
		ear->nest = false;
		run_watch_notify(ear->run_watch_set, job, run, s);
	}
}

static void a_notification_reaches_only_the_watches_that_it_concerns(void **state)
{
	struct run_watch_set *h = run_watch_set_new();
	struct ear run = {h}, job = {h}, other = {h};

	(void)state;
	run.watch = run_watch_new(h, 1, 10, listen_once, &run);
	job.watch = run_watch_new(h, 1, 0, listen_once, &job);
	other.watch = run_watch_new(h, 10, 0, listen_once, &other);
	run_watch_notify(h, 1, 10, RUN_RUNNING);
	run_watch_notify(h, 1, 11, RUN_RUNNING);
	assert_int_equal(run.heard, 1);
	assert_int_equal(job.heard, 2);
	assert_int_equal(other.heard, 0);
	run_watch_free(run.watch);
	run_watch_free(job.watch);
	run_watch_free(other.watch);
	run_watch_set_free(h);
}

static void a_watch_may_be_freed_inside_its_own_callback(void **state)
{
	struct run_watch_set *h = run_watch_set_new();
	struct ear a = {h, .leave = true}, b = {h, .nest = true}, c = {h, .leave = true};

	(void)state;
	a.watch = run_watch_new(h, 1, 10, listen_once, &a);
	b.watch = run_watch_new(h, 1, 10, listen_once, &b);
	c.watch = run_watch_new(h, 1, 0, listen_once, &c);
	run_watch_notify(h, 1, 10, RUN_SUCCEEDED);
	assert_int_equal(a.heard, 1);
	assert_int_equal(b.heard, 2);
	assert_int_equal(c.heard, 1);
	run_watch_notify(h, 1, 10, RUN_SUCCEEDED);
	assert_int_equal(a.heard, 1);
	run_watch_free(b.watch);
	run_watch_set_free(h);
}

static void an_invalid_configuration_is_reported_with_line_and_reason(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"max-running = 0\n", ":1: 'max-running' is 0, not between 1 and 10000"},
		{"\nmax-runing = 5\n", ":2: unknown key 'max-runing'; did you mean 'max-running'?"},
		{"colour = red\n", ":1: unknown key 'colour'; 'jobschedd --print-config' shows all"},
		{"node-name = a b\n", ":1: 'node-name' is 'a b': it may have letters, digits, '.', '_' and '-', at most 64 characters"},
		{"log-level = loud\n", ":1: 'log-level' is 'loud', not error, warning, info or debug"},
		{"[jobs]\nmax-running = 5\n", ":2: sections are not supported: '[jobs]'"},
		{"body-limit = 1X\n", ":1: 'body-limit' is '1X', not a number"},
		{"lease = 30\nrun-lease = 20\n", "'run-lease' is 20, shorter than 'lease', which is 30; set 'run-lease = 30' or more"},
		{"just words\n", ":1: this is not 'key = value'"},
	};
	char path[] = "/tmp/jobsched-conf-XXXXXX";

	(void)state;
	close(mkstemp(path));
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_DONE(config) c = {};
		struct err e = {};

		config_init(&c);
		assert_int_equal(io_write_file(path, cases[i].text, strlen(cases[i].text), 0600), 0);
		assert_false(config_read(&c, path, true, &e));
		assert_non_null(strstr(e.msg, cases[i].want));
	}
	unlink(path);
}

static void files_of_packages_are_read_before_the_main_file(void **state)
{
	char dir[] = "/tmp/jobsched-conf-XXXXXX";
	AUTO_DONE(config) c = {};
	struct err e = {};

	(void)state;
	assert_non_null(mkdtemp(dir));
	AUTO_TEXT path = xprintf("%s/jobschedd.conf", dir);
	AUTO_TEXT parts = xprintf("%s.d", path);
	AUTO_TEXT first = xprintf("%s/10.conf", parts);
	AUTO_TEXT second = xprintf("%s/20.conf", parts);
	AUTO_TEXT other = xprintf("%s/30.conf.dpkg-old", parts);

	assert_int_equal(mkdir(parts, 0700), 0);
	assert_int_equal(io_write_file(first, "lease = 20\nbody-limit = 1K\n", 27, 0600), 0);
	assert_int_equal(io_write_file(second, "lease = 30\nmax-running = 7\n", 27, 0600), 0);
	assert_int_equal(io_write_file(other, "no setting\n", 11, 0600), 0);
	config_init(&c);
	assert_true(config_read(&c, path, false, &e));
	assert_int_equal(c.lease, 30);
	assert_int_equal(io_write_file(path, "lease = 40\n", 11, 0600), 0);
	assert_true(config_read(&c, path, true, &e));
	assert_int_equal(c.lease, 40);
	assert_int_equal(c.body_limit, 1024);
	assert_int_equal(io_write_file(first, "no setting\n", 11, 0600), 0);
	assert_false(config_read(&c, path, true, &e));
	assert_non_null(strstr(e.msg, "10.conf:1: "));
	unlink(path), unlink(first), unlink(second), unlink(other), rmdir(parts), rmdir(dir);
}

static void the_default_run_lease_is_a_minute_but_not_below_the_lease(void **state)
{
	AUTO_DONE(config) c = {};

	(void)state;
	config_init(&c);
	assert_int_equal(config_run_lease(&c), 60);
	assert_true(config_set(&c, "lease", "90", NULL));
	assert_int_equal(config_run_lease(&c), 90);
	assert_true(config_set(&c, "run-lease", "120", NULL));
	assert_int_equal(config_run_lease(&c), 120);
}

static void a_printed_configuration_can_be_read_again(void **state)
{
	AUTO_DONE(config) a = {}, b = {};
	char path[] = "/tmp/jobsched-conf-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	AUTO_DONE(strv) differ = {};

	(void)state;
	config_init(&a);
	assert_true(config_set(&a, "store", "/x/jobs.db", NULL));
	assert_true(config_set(&a, "log-level", "debug", NULL));
	assert_true(config_set(&a, "body-limit", "2M", NULL));
	config_print(&a, f);
	fclose(f);
	config_init(&b);
	assert_true(config_read(&b, path, true, NULL));
	assert_string_equal(b.store, "/x/jobs.db");
	assert_int_equal(b.body_limit, 2 << 20);
	config_reload(&a, &b, &differ);
	assert_int_equal(differ.n, 0);
	unlink(path);
}

static void passwords_in_the_store_address_are_hidden(void **state)
{
	static const struct {
		const char *store, *shown;
	} cases[] = {
		{"/var/lib/jobsched/jobs.db", "/var/lib/jobsched/jobs.db"},
		{"postgresql://me@db/jobs", "postgresql://me@db/jobs"},
		{"postgresql://me:secret@db:5432/jobs", "postgresql://me:***@db:5432/jobs"},
		{"postgresql://db:5432/jobs?user=me&password=secret&sslmode=require",
			"postgresql://db:5432/jobs?user=me&password=***&sslmode=require"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_TEXT shown = config_store_shown(cases[i].store);

		assert_string_equal(shown, cases[i].shown);
	}
}

static void a_reload_applies_reloadable_keys_and_names_the_others(void **state)
{
	AUTO_DONE(config) running = {}, fresh = {};
	AUTO_DONE(strv) need = {};

	(void)state;
	config_init(&running);
	config_init(&fresh);
	assert_true(config_set(&fresh, "max-running", "7", NULL));
	assert_true(config_set(&fresh, "store", "/elsewhere", NULL));
	config_reload(&running, &fresh, &need);
	assert_int_equal(running.max_running, 7);
	assert_null(running.store);
	assert_int_equal(need.n, 1);
	assert_string_equal(need.v[0], "store");
}

static void limits_are_numbers_shares_or_keywords(void **state)
{
	static const struct {
		const char *key, *value;
		int64_t n;
	} cases[] = {
		{"max-running", "auto", 0},
		{"max-running", "12", 12},
		{"owner-max-running", "auto", CONFIG_SHARE_AUTO},
		{"owner-max-running", "none", 0},
		{"owner-max-running", "40%", -40},
		{"owner-max-running", "100%", -100},
		{"owner-max-running", "7", 7},
	};
	static const char *const wrong[] = {"0", "-3", "0%", "101%", "%", "7 %", "half", ""};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_DONE(config) c = {};
		AUTO_TEXT line = xprintf("\n%s = %s\n", cases[i].key, cases[i].value);
		AUTO_TEXT printed = NULL;
		size_t len;
		FILE *out = open_memstream(&printed, &len);

		config_init(&c);
		assert_true(config_set(&c, cases[i].key, cases[i].value, NULL));
		assert_int_equal(strcmp(cases[i].key, "max-running") == 0 ? c.max_running : c.owner_max_running, cases[i].n);
		config_print(&c, out);
		fclose(out);
		assert_non_null(strstr(printed, line));
	}
	for (size_t i = 0; i < ELEMENTS(wrong); i++) {
		AUTO_DONE(config) c = {};

		config_init(&c);
		assert_false(config_set(&c, "owner-max-running", wrong[i], NULL));
	}
}

static void a_rate_meter_is_zero_after_a_pause(void **state)
{
	struct rate_meter p = {};
	usec_t t = USEC_HOUR;

	(void)state;
	assert_int_equal(rate_meter_recent(&p, t), 0);
	for (int i = 0; i < 40; i++)
		rate_meter_count(&p, t += USEC_MSEC);
	assert_in_range(rate_meter_recent(&p, t), 20, 40);
	assert_in_range(rate_meter_recent(&p, t + RATE_METER_WINDOW), 20, 40);
	assert_int_equal(rate_meter_recent(&p, t + 2 * RATE_METER_WINDOW), 0);
	rate_meter_count(&p, t + 3 * RATE_METER_WINDOW);
	assert_int_equal(rate_meter_recent(&p, t + 3 * RATE_METER_WINDOW), 1);
}

static struct active_run *make_flight(int64_t id, int64_t fence)
{
	struct run *r = xcalloc(1, sizeof(*r));

	r->id = id;
	r->fence = fence;
	return active_run_new(r, ACTIVE_RUN_STARTING);
}

static void an_active_run_is_found_only_with_its_fence(void **state)
{
	struct active_runs all = {};

	(void)state;
	active_runs_add(&all, make_flight(1, 3));
	assert_null(active_runs_get(&all, 1, 2));
	assert_non_null(active_runs_get(&all, 1, 3));
	active_runs_add(&all, make_flight(1, 4));
	assert_int_equal(all.active, 1);
	active_runs_end(&all, active_runs_get(&all, 1, 4));
	assert_int_equal(all.active, 0);
	active_runs_remove(&all, active_runs_get(&all, 1, 4));
	assert_int_equal(all.active, 0);
	assert_null(active_runs_get(&all, 1, 4));
	active_runs_done(&all);
}

static void held_runs_start_in_the_order_of_their_claims(void **state)
{
	struct active_runs all = {};

	(void)state;
	for (int64_t id = 1; id <= 4; id++) {
		struct active_run *f = make_flight(id, 1);

		active_runs_add(&all, f);
		active_runs_hold(&all, f);
	}
	assert_int_equal(all.active, 0);
	assert_int_equal(all.held, 4);
	active_runs_remove(&all, active_runs_get(&all, 2, 1)); /* given back from the middle */
	active_runs_end(&all, active_runs_get(&all, 4, 1));    /* cancelled at the end */
	assert_int_equal(active_runs_release(&all, NULL)->run->id, 1);
	assert_int_equal(active_runs_release(&all, NULL)->run->id, 3);
	assert_null(active_runs_release(&all, NULL));
	assert_int_equal(all.active, 2);
	assert_int_equal(all.held, 0);
	active_runs_done(&all);
}

static void a_removed_or_replaced_socket_is_restored(void **state)
{
	char dir[] = "/tmp/jobsched-sock-XXXXXX";
	AUTO_TEXT path = NULL;
	AUTO_TEXT lock = NULL;
	struct listener *l = NULL, *second = NULL;
	struct stat was, is;
	struct err e = {};
	sd_event *ev = NULL;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	path = xprintf("%s/jobsched.sock", dir);
	lock = xprintf("%s/jobschedd.lock", dir);
	assert_true(sd_event_new(&ev) >= 0);
	assert_true(listener_open(dir, path, 0600, &l, &e));
	assert_false(listener_open(dir, path, 0600, &second, &e));
	assert_int_equal(e.kind, ERR_CONFLICT);
	assert_true(listener_watch(l, ev, &e));
	fd = listener_take_fd(l);
	assert_int_equal(stat(path, &was), 0);
	assert_int_equal(was.st_mode & 0777, 0600);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(unlink(path), 0);
		if (round == 1)
			assert_int_equal(io_write_file(path, "x", 1, 0600), 0);
		while (sd_event_run(ev, 100000) > 0)
			;
		assert_int_equal(stat(path, &is), 0);
		assert_int_equal(is.st_ino, was.st_ino);
	}
	listener_free(l);
	close(fd);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing else is left */
	sd_event_unref(ev);
}

/* ---- notices ---- */

static void each_mail_header_is_one_line(void **state)
{
	struct mail m = {.from_user = "a b>\nBcc: x", .from_host = "h\r\n", .to = "ann@example.com", .subject = "plain",
		.id = "1-2\n", .text = "ends in blank \nFrom me\n.\na=b \xc3\xb6", .date = INT64_C(1800000000000000)};
	AUTO_DONE(buf) plain = {};
	AUTO_DONE(buf) encoded = {};

	(void)state;
	mail_write(&m, &plain);
	assert_string_equal(plain.data, "From: jobsched <a_b__Bcc__x@h__>\nTo: ann@example.com\nSubject: plain\n"
		"Date: Fri, 15 Jan 2027 08:00:00 +0000\nMessage-ID: <1-2_@h__>\nAuto-Submitted: auto-generated\n"
		"MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n"
		"ends in blank=20\n=46rom me\n=2E\na=3Db =C3=B6\n");
	m.subject = "w\xc3\xb6rld =?x?=";
	mail_write(&m, &encoded);
	assert_non_null(strstr(encoded.data, "\nSubject: =?UTF-8?B?d8O2cmxkID0/eD89?=\n"));
}

static void count_overlong(struct active_run *f, void *arg)
{
	(void)f;
	++*(int *)arg;
}

static void a_long_run_is_reported_once(void **state)
{
	struct active_runs all = {};
	struct run *r[3];
	int told = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		r[i] = calloc(1, sizeof(*r[i]));
		r[i]->id = i + 1;
		active_runs_add(&all, active_run_new(r[i], i == 2 ? ACTIVE_RUN_STARTING : ACTIVE_RUN_RUNNING));
		active_runs_get(&all, i + 1, 0)->long_at = 100 * (i + 1);
	}
	assert_int_equal(active_runs_overlong(&all, 99, count_overlong, &told), 100);
	assert_int_equal(told, 0);
	assert_int_equal(active_runs_overlong(&all, 100, count_overlong, &told), 200);
	assert_int_equal(told, 1);
	assert_int_equal(active_runs_overlong(&all, 150, count_overlong, &told), 200);
	assert_int_equal(told, 1);
	assert_int_equal(active_runs_overlong(&all, 900, count_overlong, &told), USEC_NEVER);
	assert_int_equal(told, 2);
	active_runs_done(&all);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_notification_reaches_only_the_watches_that_it_concerns),
		TEST(a_watch_may_be_freed_inside_its_own_callback),
		TEST(an_invalid_configuration_is_reported_with_line_and_reason),
		TEST(files_of_packages_are_read_before_the_main_file),
		TEST(the_default_run_lease_is_a_minute_but_not_below_the_lease),
		TEST(a_printed_configuration_can_be_read_again),
		TEST(passwords_in_the_store_address_are_hidden),
		TEST(a_reload_applies_reloadable_keys_and_names_the_others),
		TEST(limits_are_numbers_shares_or_keywords),
		TEST(a_rate_meter_is_zero_after_a_pause),
		TEST(held_runs_start_in_the_order_of_their_claims),
		TEST(an_active_run_is_found_only_with_its_fence),
		TEST(a_removed_or_replaced_socket_is_restored),
		TEST(each_mail_header_is_one_line),
		TEST(a_long_run_is_reported_once),
	};

	return RUN_TESTS(tests);
}
