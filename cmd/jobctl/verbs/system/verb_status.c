/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl status', 'jobctl version' and jobctl without arguments. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/pauses.h"
#include "jobctl/render/render.h"
#include "jobctl/render/words.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

#define OVERDUE_SHOWN 30.0 /* seconds: smaller delays are not shown */
#define OFFSET_SHOWN 1.0   /* seconds */

typedef const char *state_name_fn(int state);

static const char *job_state_at(int state)
{
	return state < JOB_STATE_MAX ? job_state_name((enum job_state)state) : NULL;
}

static const char *run_state_at(int state)
{
	return state < RUN_STATE_MAX ? run_state_name((enum run_state)state) : NULL;
}

/* Counts by state, without zeros: "3 active, 1 finished". */
static void put_counts(struct buf *out, const char *label, const json_t *counts,
	state_name_fn *name_at)
{
	const char *name, *gap = "";

	buf_printf(out, "%-8s", label);
	for (int i = 0; (name = name_at(i)); i++) {
		int64_t n = member_int(counts, name);

		if (n == 0)
			continue;
		buf_printf(out, "%s%" PRId64 " %s", gap, n, name);
		gap = ", ";
	}
	buf_str(out, *gap ? "\n" : "none\n");
}

static void put_escaped_text(struct buf *out, const char *before, const char *text,
	const char *after)
{
	buf_str(out, before);
	if (text)
		text_escape(out, text, strlen(text));
	buf_str(out, after);
}

/* "limit   64 at a time, by the number of cores; 48 of one owner" */
static void put_limit(struct buf *out, const json_t *s)
{
	buf_printf(out, "limit   %" PRId64 " at a time", member_int(s, "max_running"));
	put_escaped_text(out, ", ", member_text(s, "max_running_why"), "");
	if (member_int(s, "owner_max_running") > 0)
		buf_printf(out, "; %" PRId64 " of one owner", member_int(s, "owner_max_running"));
	buf_char(out, '\n');
}

/* "you     alice, user; 3 jobs, 1 running" */
static void put_you(struct buf *out, const json_t *s)
{
	const json_t *you = json_object_get(s, "you");
	int64_t jobs = member_int(you, "jobs"), running = member_int(you, "running");

	if (!json_is_object(you))
		return;
	if (member_text(you, "name"))
		put_escaped_text(out, "you     ", member_text(you, "name"), "");
	else
		buf_printf(out, "you     uid %" PRId64, member_int(you, "uid"));
	put_escaped_text(out, ", ", member_text(you, "role"), "");
	if (text_equal(member_text(you, "role"), "denied"))
		buf_str(out, ": you can see and cancel your jobs, but start nothing");
	buf_printf(out, "; %" PRId64 " job%s, %" PRId64 " running\n", jobs, jobs == 1 ? "" : "s",
		running);
}

/* "spawner nothing is started: the spawner (pid 17) is stopped by a signal (kill -CONT 17)" */
static void put_spawner(struct buf *out, const json_t *s)
{
	const char *why = member_text(s, "spawner_why");

	if (!json_is_false(json_object_get(s, "spawner_up")))
		return;
	put_escaped_text(out, "spawner nothing is started: ", why ? why : "the spawner is down",
		"");
	if (member_int(s, "spawner_stopped") > 0)
		buf_printf(out, " (kill -CONT %" PRId64 ")", member_int(s, "spawner_stopped"));
	else if (text_equal(member_text(s, "mode"), "system"))
		buf_str(out, " (systemctl status jobsched-spawner)");
	buf_char(out, '\n');
}

static void put_totals(struct buf *out, const json_t *s)
{
	put_spawner(out, s);
	if (!json_is_object(json_object_get(s, "jobs")))
		return;
	put_counts(out, "jobs", json_object_get(s, "jobs"), job_state_at);
	put_counts(out, "runs", json_object_get(s, "runs"), run_state_at);
	buf_printf(out, "now     %" PRId64 " active, room for %" PRId64 " more\n",
		member_int(s, "in_flight"), member_int(s, "room"));
}

static double seconds_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void put_offset(struct buf *out, double offset)
{
	if (offset >= OFFSET_SHOWN || offset <= -OFFSET_SHOWN)
		buf_printf(out,
			"clock   %.1f s %s the clock of the store, which decides when runs are due: correct it\n",
			offset > 0 ? offset : -offset, offset > 0 ? "behind" : "ahead of");
}

/*
 * "cluster n2 leads in term 7, its lease lasts 9.8 s; 3 nodes
 *  here    21 segments are planned, the lease is 2.1 s old, the run lease lasts 57.9 s"
 */
static void put_cluster(struct buf *out, const json_t *c)
{
	const char *leader = member_text(c, "leader");
	double overdue = seconds_of(c, "overdue");
	bool draining = json_is_true(json_object_get(c, "draining"));

	put_offset(out, seconds_of(c, "clock_offset"));
	if (member_int(c, "nodes") < 2 && leader && overdue < OVERDUE_SHOWN && !draining)
		return; /* a single healthy node */
	if (leader) {
		put_escaped_text(out, "cluster ", leader, "");
		buf_printf(out, " leads in term %" PRId64 ", its lease lasts %.1f s",
			member_int(c, "term"), seconds_of(c, "leader_lease_remains"));
	} else {
		buf_printf(out, "cluster no leader since term %" PRId64, member_int(c, "term"));
	}
	buf_printf(out, "; %" PRId64 " node%s\n", member_int(c, "nodes"),
		member_int(c, "nodes") == 1 ? "" : "s");
	buf_printf(out,
		"here    %" PRId64
		" segments are planned, the lease is %.1f s old, the run lease lasts %.1f s%s\n",
		member_int(c, "segments"), seconds_of(c, "lease_age"),
		seconds_of(c, "run_lease_remains"),
		draining ? "; drained: no new runs are started" : "");
	if (overdue >= OVERDUE_SHOWN)
		buf_printf(out,
			"overdue the first slot has been waiting for %.0f s: no node plans it\n",
			overdue);
}

static void put_store(const json_t *store, struct buf *out)
{
	char words[WORDS_MAX];

	put_escaped_text(out, "store   ", member_text(store, "place"), "\n");
	if (member_time(store, "away_since")) {
		put_escaped_text(out, "away    since ",
			words_instant(member_time(store, "away_since"), words), "");
		put_escaped_text(out, ": ", member_text(store, "away_why"), "\n");
	}
	if (member_text(store, "risk"))
		put_escaped_text(out, "risk    ", member_text(store, "risk"), "\n");
	if (member_text(store, "held"))
		put_escaped_text(out, "events  ", member_text(store, "held"), "\n");
	if (json_is_true(json_object_get(store, "full")))
		buf_str(out,
			"full    no space is left for the store: new jobs are refused until space is freed; stored jobs run\n");
}

static void put_status(const struct ctl *c, const json_t *s, struct buf *out)
{
	const json_t *node = json_object_get(s, "node");
	usec_t next = member_time(s, "next_slot");
	usec_t uptime = (usec_t)(json_number_value(json_object_get(s, "uptime")) * USEC_SEC);
	char words[WORDS_MAX], instant[WORDS_MAX];

	put_escaped_text(out, "jobschedd ", member_text(s, "version"), "");
	put_escaped_text(out, " on ", member_text(node, "name"), "");
	buf_printf(out, ", up %s\n", words_duration(uptime, words));
	put_escaped_text(out, "socket  ", c->socket,
		text_equal(member_text(s, "mode"), "system") ? " (system)\n" : "\n");
	put_store(json_object_get(s, "store"), out);
	if (member_time(s, "stuck_since")) {
		put_escaped_text(out, "stuck   no run has been started since ",
			words_instant(member_time(s, "stuck_since"), words), "");
		put_escaped_text(out, ": ", member_text(s, "stuck_why"), "\n");
	}
	if (json_is_object(json_object_get(s, "cluster")))
		put_cluster(out, json_object_get(s, "cluster"));
	put_you(out, s);
	put_totals(out, s);
	if (text_equal(member_text(s, "clock"), "wrong"))
		buf_str(out,
			"clock   wrong: it shows a time before this program was built; nothing is planned until it is set\n");
	else if (text_equal(member_text(s, "clock"), "unset"))
		buf_str(out,
			"clock   not set since boot; slots wait until it is set, or until the time limit for that has passed\n");
	if (member_int(s, "max_running") > 0)
		put_limit(out, s);
	if (member_text(json_object_get(s, "net"), "why"))
		put_escaped_text(out, "net     ", member_text(json_object_get(s, "net"), "why"),
			"; webhooks and artifacts wait\n");
	if (member_text(json_object_get(s, "archive"), "failing_why"))
		put_escaped_text(out, "archive ", member_text(json_object_get(s, "archive"), "failing_why"),
			"; old history is kept until it can be uploaded\n");
	if (json_is_true(json_object_get(json_object_get(s, "crontabs"), "held")))
		put_escaped_text(out, "cron    crontabs are held: ", member_text(json_object_get(s, "crontabs"), "cron"),
			" (jobctl cron takeover)\n");
	if (member_int(json_object_get(s, "notices"), "failed") > 0)
		buf_printf(out, "notices %" PRId64 " could not be sent (jobctl notices --failed)\n",
			member_int(json_object_get(s, "notices"), "failed"));
	if (member_int(s, "backlog") > 0)
		buf_printf(out, "backlog %" PRId64 " operation%s for the store\n",
			member_int(s, "backlog"),
			member_int(s, "backlog") == 1 ? " waits" : "s wait");
	if (next && json_is_object(json_object_get(s, "frozen")) &&
		!member_text(json_object_get(s, "frozen"), "spared"))
		buf_str(out, "next    nothing, while everything is frozen (jobctl thaw)\n");
	else if (next)
		buf_printf(out, "next    %s (%s)\n", words_relative(next, c->now, words),
			words_instant(next, instant));
}

int verb_status(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) out = {};
	json_auto_t *status = NULL;
	struct err e = {};
	bool away, well;
	int code;

	(void)a;
	if (!api_call(c, "GET", "/v1/status", NULL, &status, &e))
		return ctl_fail(&e);
	away = member_time(json_object_get(status, "store"), "away_since");
	well = !away && !member_time(status, "stuck_since") &&
	       !json_is_false(json_object_get(status, "spawner_up")) &&
	       !json_is_true(json_object_get(json_object_get(status, "store"), "full"));
	if (render_wants_json(c)) {
		code = render_object(c, status);
		return well ? code : EXIT_FAILURE;
	}
	put_status(c, status, &out);
	render_flush(&out);
	if (away) /* pauses cannot be read without the store */
		return EXIT_FAILURE;
	if (!pauses_say(c, &e))
		return ctl_fail(&e);
	return well ? EXIT_SUCCESS : EXIT_FAILURE;
}

int verb_version(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) out = {};
	json_auto_t *status = NULL;
	const char *daemon = NULL;

	(void)a;
	if (api_call(c, "GET", "/v1/status", NULL, &status, NULL))
		daemon = member_text(status, "version");
	if (render_wants_json(c)) {
		json_auto_t *o =
			json_pack("{s:s, s:s?}", "jobctl", PACKAGE_VERSION, "jobschedd", daemon);

		return render_object(c, o);
	}
	buf_printf(&out, "jobctl %s\n", PACKAGE_VERSION);
	if (daemon) {
		buf_str(&out, "jobschedd ");
		text_escape(&out, daemon, strlen(daemon));
		buf_printf(&out, " at %s\n", c->socket);
	}
	return render_text(&out);
}

static const char commands_to_try[] =
	"\nTry:\n"
	"  jobctl add -- echo hello              run a command now\n"
	"  jobctl add -n tidy --every 1h -- CMD  run a command every hour\n"
	"  jobctl list                           list your jobs\n"
	"  jobctl log -f JOB                     follow the output of a job\n"
	"  jobctl help                           list all verbs\n";

int verb_none(struct ctl *c)
{
	AUTO_DONE(buf) out = {};
	json_auto_t *status = NULL;
	struct err e = {};
	int code = EXIT_SUCCESS;

	if (api_call(c, "GET", "/v1/status", NULL, &status, &e))
		put_status(c, status, &out);
	else
		code = ctl_fail(&e);
	buf_str(&out, commands_to_try + (out.len == 0));
	render_flush(&out);
	return code;
}
