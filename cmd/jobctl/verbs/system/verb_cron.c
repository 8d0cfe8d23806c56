/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs for crontabs: status, compare, takeover, give-back. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/cron/compare.h"
#include "jobctl/cron/takeover.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/moment.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONFIG JOBSCHED_SYSCONFDIR "/jobschedd.conf"
#define SETTLE (2 * USEC_MIN)   /* cron's log and the slots of this time may be incomplete */
#define WAIT_SECONDS 30

static void escape(struct buf *out, const char *text)
{
	text_escape(out, text, strlen(text));
}

/* ---- status ---- */

static void table_print(const json_t *t, struct buf *out)
{
	const char *problem = member_text(t, "problem"), *note = member_text(t, "note"), *path = member_text(t, "path");
	int64_t jobs = member_int(t, "jobs");

	buf_str(out, "  ");
	escape(out, path ? path : "");
	buf_printf(out, ": %" PRId64 " %s", jobs, jobs == 1 ? "job" : "jobs");
	if (problem) {
		buf_str(out, "; not used: ");
		escape(out, problem);
	} else if (note) {
		buf_str(out, "; ");
		escape(out, note);
	}
	buf_char(out, '\n');
}

static void status_print(const json_t *s, struct buf *out)
{
	const char *mode = member_text(s, "mode"), *parser = member_text(s, "parser"), *cron = member_text(s, "cron"),
		*anacron = member_text(s, "anacron"), *problem = member_text(s, "problem");
	bool held = json_is_true(json_object_get(s, "held")), off = mode && strcmp(mode, "off") == 0;
	const json_t *row;
	size_t i;

	buf_printf(out, "crontabs are %s", mode ? mode : "off");
	if (parser && !off)
		buf_printf(out, ", read as %s", parser);
	buf_str(out, off && !problem ? "; 'crontabs' in jobschedd.conf(5) turns them on\n" : "\n");
	if (held) {
		buf_str(out, "held: ");
		escape(out, cron ? cron : "another cron daemon runs");
		buf_str(out, "; 'jobctl cron takeover' stops it and lets these jobs run\n");
	} else if (cron && !off) {
		buf_str(out, "cron: ");
		escape(out, cron);
		buf_str(out, "; 'jobctl cron compare' compares it with these jobs\n");
	}
	if (anacron && !off) {
		buf_str(out, "anacron: ");
		escape(out, anacron);
		buf_char(out, '\n');
	}
	if (problem) {
		buf_str(out, off ? "not usable: " : "not in step: ");
		escape(out, problem);
		buf_char(out, '\n');
	}
	json_array_foreach(json_object_get(s, "tables"), i, row)
		table_print(row, out);
}

int verb_cron_status(struct ctl *c, const struct args *a)
{
	json_auto_t *s = NULL;
	AUTO_DONE(buf) out = {};
	struct err e = {};

	(void)a;
	if (!api_call(c, "GET", "/v1/crontabs", NULL, &s, &e))
		return ctl_fail(&e);
	if (render_wants_json(c))
		return render_object(c, s);
	status_print(s, &out);
	return render_text(&out);
}

/* ---- compare ---- */

struct comparing {
	struct compare_lines lines;
	struct compare_slot *slots;
	size_t n_slots;
	usec_t covered; /* the first table was known then */
};

static void comparing_done(struct comparing *g)
{
	compare_lines_done(&g->lines);
	free(g->slots);
}

static usec_t time_of(const json_t *row, const char *key)
{
	const char *text = member_text(row, key);
	usec_t t = 0;

	return text && rfc3339_parse(text, &t, NULL) ? t : 0;
}

/* As cron logs it: without blanks at the ends. */
static char *command_of(const json_t *job)
{
	const char *text = json_string_value(json_array_get(json_object_get(job, "command"), 2));
	size_t n;

	if (!text)
		return NULL;
	text += strspn(text, " \t");
	for (n = strlen(text); n > 0 && strchr(" \t", text[n - 1]);)
		n--;
	return xstrndup(text, n);
}

static bool on_job_row(const json_t *job, void *arg)
{
	struct comparing *g = arg;
	const char *origin = member_text(job, "origin"), *owner = member_text(job, "owner");
	struct compare_line l = {.since = time_of(job, "created_at"), .job = member_int(job, "id")};

	if (!origin || !owner || json_object_get(json_object_get(job, "tags"), "anacron"))
		return true;
	l.command = command_of(job);
	if (!l.command)
		return true;
	l.origin = xstrdup(origin);
	l.user = xstrdup(owner);
	if (!g->covered || l.since < g->covered)
		g->covered = l.since;
	g->lines.v = xgrow(g->lines.v, g->lines.n, sizeof(*g->lines.v));
	g->lines.v[g->lines.n++] = l;
	return true;
}

static bool on_run_row(const json_t *run, void *arg)
{
	struct comparing *g = arg;
	const char *kind = member_text(run, "kind");
	int64_t job = member_int(run, "job");

	if (!kind || strcmp(kind, "schedule") != 0)
		return true;
	for (size_t i = 0; i < g->lines.n; i++)
		if (g->lines.v[i].job == job) {
			g->slots = xgrow(g->slots, g->n_slots, sizeof(*g->slots));
			g->slots[g->n_slots++] = (struct compare_slot){i, time_of(run, "slot")};
			break;
		}
	return true;
}

static bool slots_read(struct ctl *c, struct comparing *g, usec_t since, struct err *e)
{
	AUTO_DONE(buf) path = {};
	char text[RFC3339_MAX];
	struct pages jobs = {.path = "/v1/jobs", .member = "jobs", .row = on_job_row, .arg = g};
	struct pages runs = {.member = "runs", .row = on_run_row, .arg = g};

	if (!api_pages(c, &jobs, e))
		return false;
	buf_str(&path, "/v1/runs");
	api_query_add(&path, "since", rfc3339_format(since, text));
	api_query_add(&path, "planned", "false");
	runs.path = path.data;
	return api_pages(c, &runs, e);
}

static json_t *difference_json(const struct compare_difference *d)
{
	char at[RFC3339_MAX];

	return json_pack("{s:s, s:s, s:s, s:s?, s:s}", "at", rfc3339_format(d->minute, at), "user", d->user, "command", d->command,
		"origin", d->origin, "run_by", d->by_cron ? "cron" : "jobsched");
}

static void difference_print(const struct compare_difference *d, struct buf *out)
{
	time_t t = (time_t)(d->minute / USEC_SEC);
	char at[64];
	struct tm tm;

	strftime(at, sizeof(at), "%F %H:%M", localtime_r(&t, &tm));
	buf_printf(out, "%s  %s  ", at, d->by_cron ? "only cron   " : "only jobsched");
	escape(out, d->user);
	buf_str(out, "  ");
	escape(out, d->origin ? d->origin : "(in no table)");
	buf_str(out, "  ");
	escape(out, d->command);
	buf_char(out, '\n');
}

static int compare_print(const struct ctl *c, const struct comparing *g, const struct compare_result *r, usec_t from, usec_t to)
{
	AUTO_DONE(buf) out = {};
	char since[RFC3339_MAX], until[RFC3339_MAX];

	if (render_wants_json(c)) {
		json_auto_t *o = json_pack("{s:s, s:s, s:I, s:I, s:o}", "from", rfc3339_format(from, since), "to",
			rfc3339_format(to, until), "lines", (json_int_t)g->lines.n, "same", (json_int_t)r->both, "differences", json_array());

		for (size_t i = 0; i < r->n; i++)
			json_array_append_new(json_object_get(o, "differences"), difference_json(&r->v[i]));
		render_object(c, o);
		return r->n ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	for (size_t i = 0; i < r->n; i++)
		difference_print(&r->v[i], &out);
	buf_printf(&out, "%zu starts are the same, %zu differ; %zu lines, from %s to %s\n", r->both, r->n, g->lines.n,
		rfc3339_format(from, since), rfc3339_format(to, until));
	render_text(&out);
	return r->n ? EXIT_FAILURE : EXIT_SUCCESS;
}

int verb_cron_compare(struct ctl *c, const struct args *a)
{
	__attribute__((cleanup(comparing_done))) struct comparing g = {};
	const char *given = args_last(a, "since");
	AUTO_DONE(cron_starts) starts = {};
	struct compare_result r = {};
	usec_t since, to = c->now - SETTLE;
	struct err e = {};
	int code;

	if (!moment_parse(given ? given : "7d", &(struct moment_how){.now = c->now, .back = true}, &since, &e) ||
		!slots_read(c, &g, since, &e))
		return ctl_fail(&e);
	if (g.lines.n == 0) {
		err_set(&e, ERR_NOT_FOUND, "no job comes from a crontab; 'crontabs = shadow' in jobschedd.conf(5) plans the lines without running "
			"them ('jobctl cron status' shows the tables)");
		return ctl_fail(&e);
	}
	if (since < g.covered)
		since = g.covered;
	since += USEC_MIN - 1;
	since -= since % USEC_MIN;
	if (!cron_log_read(args_last(a, "log"), since, c->now, &starts, &e))
		return ctl_fail(&e);
	compare_run(&g.lines, g.slots, g.n_slots, &starts, since, to, &r);
	code = compare_print(c, &g, &r, since, to);
	free(r.v);
	return code;
}

/* ---- takeover and give-back ---- */

static const char *config_of(const struct args *a)
{
	return args_last(a, "config") ? args_last(a, "config") : CONFIG;
}

static bool root_check(struct err *e)
{
	return geteuid() == 0 || err_set(e, ERR_DENIED, "only root can stop or start cron; use 'sudo jobctl cron …'");
}

static bool daemon_reload(const struct ctl *c, struct err *e)
{
	if (takeover_has_systemd())
		return takeover_systemctl(e, (const char *const[]){"reload-or-restart", "jobschedd.service", NULL});
	return (c->daemon > 0 && kill(c->daemon, SIGHUP) == 0) ||
	       err_set(e, ERR_UNREACHABLE, "could not make jobschedd read its configuration again; send it SIGHUP");
}

typedef bool state_fn(const json_t *s);

static bool state_is_on(const json_t *s)
{
	const char *mode = member_text(s, "mode");

	return mode && strcmp(mode, "on") == 0 && json_is_true(json_object_get(s, "read"));
}

static bool state_runs(const json_t *s)
{
	return state_is_on(s) && !json_is_true(json_object_get(s, "held"));
}

static bool state_is_held(const json_t *s)
{
	return member_text(s, "cron") != NULL;
}

/* The daemon may be restarting. */
static bool state_wait(struct ctl *c, state_fn *fn, const char *what, struct err *e)
{
	for (int i = 0; i < WAIT_SECONDS * 4; i++) {
		json_auto_t *s = NULL;
		struct err why = {};

		if (api_call(c, "GET", "/v1/crontabs", NULL, &s, &why) && fn(s))
			return true;
		usleep(250000);
	}
	return err_set(e, ERR_BUSY, "%s within %d s; 'jobctl cron status' and the log of jobschedd show why", what, WAIT_SECONDS);
}

static void say(bool dry_run, const char *what, const char *object)
{
	AUTO_DONE(buf) line = {};

	buf_printf(&line, "%s%s%s%s\n", dry_run ? "would " : "", what, object ? " " : "", object ? object : "");
	render_flush(&line);
}

static bool record_begin(const char *config, bool dry_run, struct takeover_record *r, struct err *e)
{
	bool there;

	if (!takeover_record_read(config, r, &there, e))
		return false;
	if (!there && !takeover_config_get(config, &r->mode, e))
		return false;
	for (size_t i = 0; i < takeover_units_count; i++) {
		bool known = false;

		for (size_t k = 0; k < r->units.n; k++)
			known |= strcmp(r->units.v[k], takeover_units[i].name) == 0;
		if (!known && takeover_unit_exists(takeover_units[i].name) && !takeover_unit_masked(takeover_units[i].name))
			strv_add(&r->units, takeover_units[i].name);
	}
	return dry_run || takeover_record_write(config, r, e);
}

/* The unit is masked before it is stopped: after a reboot in between it does not start again. */
static bool units_mask(const struct takeover_record *r, bool dry_run, struct err *e)
{
	for (size_t i = 0; i < r->units.n; i++) {
		const char *name = r->units.v[i];
		bool stop = false;

		for (size_t k = 0; k < takeover_units_count; k++)
			stop |= strcmp(takeover_units[k].name, name) == 0 && takeover_units[k].stop;
		say(dry_run, stop ? "mask and stop" : "mask", name);
		if (dry_run)
			continue;
		if (!takeover_systemctl(e, (const char *const[]){"mask", name, NULL}) ||
			(stop && !takeover_systemctl(e, (const char *const[]){"stop", name, NULL})))
			return false;
	}
	return true;
}

static bool mode_set(struct ctl *c, const char *config, const char *mode, bool dry_run, struct err *e)
{
	AUTO_TEXT text = xprintf("crontabs = %s in %s", mode, config);
	AUTO_TEXT before = NULL;

	say(dry_run, "set", text);
	if (dry_run)
		return true;
	return takeover_config_set(config, mode, &before, e) && daemon_reload(c, e);
}

/* Nothing is changed if the daemon cannot run the tables. */
static bool tables_usable(const json_t *s, struct err *e)
{
	const char *mode = member_text(s, "mode"), *problem = member_text(s, "problem");

	return !problem || !mode || strcmp(mode, "off") != 0 || err_set(e, ERR_REFUSED, "%s", problem);
}

static bool takeover(struct ctl *c, const char *config, bool dry_run, struct err *e)
{
	AUTO_DONE(takeover_record) record = {};
	json_auto_t *now = NULL;

	if (!api_call(c, "GET", "/v1/crontabs", NULL, &now, e) || !tables_usable(now, e) || !record_begin(config, dry_run, &record, e))
		return false;
	/* first ours: they are held while cron is enabled, so a reboot at any point leaves one that runs */
	if (!mode_set(c, config, "on", dry_run, e) || (!dry_run && !state_wait(c, state_is_on, "the tables were not read", e)))
		return false;
	if (record.units.n > 0 && !takeover_has_systemd())
		return err_set(e, ERR_REFUSED, "this machine does not run systemd; stop cron and keep it from starting, then the jobs run");
	if (!dry_run)
		takeover_avoid_minute();
	if (!units_mask(&record, dry_run, e))
		return false;
	if (dry_run)
		return true;
	if (!state_wait(c, state_runs, "cron did not stop", e))
		return false;
	say(false, "jobschedd runs the crontabs now; 'jobctl cron give-back' undoes this", NULL);
	return true;
}

int verb_cron_takeover(struct ctl *c, const struct args *a)
{
	struct err e = {};

	return root_check(&e) && takeover(c, config_of(a), args_has(a, "dry-run"), &e) ? EXIT_SUCCESS : ctl_fail(&e);
}

/* Units that are already as they were are skipped by systemctl. */
static bool units_unmask(const struct takeover_record *r, bool dry_run, struct err *e)
{
	for (size_t i = r->units.n; i-- > 0;) {
		const char *name = r->units.v[i];
		bool start = strcmp(name, "anacron.service") != 0;

		say(dry_run, start ? "unmask and start" : "unmask", name);
		if (dry_run)
			continue;
		if (!takeover_systemctl(e, (const char *const[]){"unmask", name, NULL}) ||
			(start && !takeover_systemctl(e, (const char *const[]){"start", name, NULL})))
			return false;
	}
	return true;
}

static bool give_back(struct ctl *c, const char *config, bool dry_run, struct err *e)
{
	AUTO_TEXT path = takeover_record_path(config);
	AUTO_DONE(takeover_record) record = {};
	json_auto_t *now = NULL;
	bool there;

	if (takeover_package_installed())
		return err_set(e, ERR_REFUSED, "the package jobsched-cron is installed and replaces cron, so no other cron daemon can run the "
			"tables; remove it first: apt install cron, or dnf install cronie");
	if (!takeover_record_read(config, &record, &there, e))
		return false;
	if (!there)
		return err_set(e, ERR_CONFLICT, "there was no takeover: '%s' does not exist", path);
	if (!api_call(c, "GET", "/v1/crontabs", NULL, &now, e))
		return false;
	/* first cron: its unit is enabled again, which holds our jobs, also after a reboot in between */
	if (!dry_run && record.units.n > 0) {
		takeover_mark_boot();
		takeover_avoid_minute();
	}
	if (!units_unmask(&record, dry_run, e))
		return false;
	if (!dry_run && record.units.n > 0 && !state_wait(c, state_is_held, "cron did not start", e))
		return false;
	if (!mode_set(c, config, record.mode ? record.mode : "off", dry_run, e))
		return false;
	if (dry_run)
		return true;
	if (unlink(path) < 0)
		return err_set(e, ERR_INTERNAL, "could not remove '%s'", path);
	say(false, record.units.n ? "cron runs the crontabs again" : "the crontabs are as they were before the takeover", NULL);
	return true;
}

int verb_cron_give_back(struct ctl *c, const struct args *a)
{
	struct err e = {};

	return root_check(&e) && give_back(c, config_of(a), args_has(a, "dry-run"), &e) ? EXIT_SUCCESS : ctl_fail(&e);
}
