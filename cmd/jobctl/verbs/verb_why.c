/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl why'. */
#include "jobctl/verbs/verb_why.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/filters.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/render/table.h"
#include "jobctl/render/words.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

#define LIMIT_MAX 100    /* of the API */
#define PLANNED_ASKED 10 /* planned runs that are requested in addition */

static void put_why(const json_t *why, const char *margin, struct buf *out)
{
	const char *message = member_text(why, "message"), *command = member_text(why, "command");
	AUTO_DONE(buf) local = {};

	words_localize(message ? message : "", &local);
	text_escape(out, local.data ? local.data : "", local.len);
	buf_char(out, '\n');
	if (command)
		buf_printf(out, "%s(%s)\n", margin, command);
}

static void put_slot_time(const struct ctl *c, const json_t *o, const char *key, struct buf *out)
{
	usec_t t = member_time(o, key);
	char text[WORDS_MAX];

	buf_str(out, words_instant(t, text));
	if (c->terminal)
		buf_printf(out, "  %s", words_relative(t, c->now, text));
}

static void put_run_why(const struct ctl *c, const json_t *run, struct buf *out)
{
	AUTO_DONE(buf) ref = {};

	ref_of_run(run, &ref);
	buf_str(out, "  ");
	put_slot_time(c, run, "slot", out);
	buf_printf(out, "  %s  %s\n    ", ref.data, member_text(run, "state"));
	put_why(json_object_get(run, "why"), "    ", out);
}

static void put_next_times(const struct ctl *c, const json_t *slots, struct buf *out)
{
	const json_t *slot;
	size_t i;

	json_array_foreach(slots, i, slot) {
		json_auto_t *o = json_pack("{s:O}", "at", slot);

		buf_str(out, i ? "       " : "next:  ");
		put_slot_time(c, o, "at", out);
		buf_char(out, '\n');
	}
}

static void put_no_next(const json_t *slots, struct buf *out)
{
	if (json_array_size(slots) == 0)
		buf_str(out, "next:  none until that ends\n");
}

enum slots { SLOTS_FUTURE, SLOTS_PAST };

/* Runs whose slots are in the past or in the future, under a heading. */
static void put_runs(const struct ctl *c, const json_t *runs, enum slots which, size_t limit,
	struct buf *out)
{
	const json_t *run;
	size_t i, n = 0;

	json_array_foreach(runs, i, run) {
		const char *state = member_text(run, "state");
		bool future =
			member_time(run, "slot") > c->now && state && strcmp(state, "queued") == 0;

		if (future != (which == SLOTS_FUTURE) || n == limit)
			continue;
		if (n++ == 0)
			buf_str(out, future ? "planned slots:\n" : "last slots:\n");
		put_run_why(c, run, out);
	}
}

static void put_job_why(const struct ctl *c, const json_t *o, size_t limit, struct buf *out)
{
	const json_t *runs = json_object_get(o, "runs");
	const char *now = member_text(json_object_get(o, "now"), "code");

	buf_printf(out, "job %" PRId64, member_int(o, "job"));
	if (member_text(o, "name"))
		buf_printf(out, " '%s'", member_text(o, "name"));
	buf_printf(out, " is %s\nnow:   ", member_text(o, "state"));
	put_why(json_object_get(o, "now"), "       ", out);
	put_next_times(c, json_object_get(o, "next"), out);
	if (text_equal(now, "paused") || text_equal(now, "frozen"))
		put_no_next(json_object_get(o, "next"), out);
	put_runs(c, runs, SLOTS_FUTURE, PLANNED_ASKED, out);
	put_runs(c, runs, SLOTS_PAST, limit, out);
}

static void put_why_at(const struct ctl *c, const json_t *at, struct buf *out)
{
	const json_t *run = json_object_get(at, "run");

	if (json_is_object(run))
		put_run_why(c, run, out);
	else
		put_why(json_object_get(at, "why"), "", out);
}

/* *ret_limit: the number of past slots to show. */
static bool why_path(struct ctl *c, const struct args *a, struct buf *path, size_t *ret_limit,
	struct err *e)
{
	json_auto_t *o = NULL;
	struct ref ref;
	char *const *words;
	size_t limit = 0;
	char number[24];

	args_operands(a, &words);
	if (!ref_parse(words[0], &ref, e) || !(ref.run ? api_run : api_job)(c, &ref, &o, e))
		return false;
	buf_printf(path, "/v1/jobs/%" PRId64 "/why", member_int(o, ref.run ? "job" : "id"));
	if (ref.run) {
		snprintf(number, sizeof(number), "%" PRId64, ref.run);
		api_query_add(path, "run", number);
	}
	if (!filter_limit(a, ref.run || args_last(a, "at") ? 0 : 10, &limit, e) ||
		!filter_time(path, a, "at", c->now, e))
		return false;
	if (limit > LIMIT_MAX)
		return err_set(e, ERR_INVALID, "--limit: at most 100; 'jobctl runs %s' shows more",
			words[0]);
	*ret_limit = limit;
	/* The answer begins with planned slots, which are shown separately and do not count. */
	if (limit > 0 && render_is_text(c))
		limit = limit + PLANNED_ASKED > LIMIT_MAX ? LIMIT_MAX : limit + PLANNED_ASKED;
	snprintf(number, sizeof(number), "%zu", limit);
	api_query_add(path, "limit", number);
	return true;
}

void verb_why_text(const struct ctl *c, const json_t *answer, struct buf *out)
{
	if (json_is_object(json_object_get(answer, "run")))
		put_run_why(c, json_object_get(answer, "run"), out);
	else
		put_job_why(c, answer, PLANNED_ASKED, out);
}

int verb_why(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) path = {};
	AUTO_DONE(buf) out = {};
	json_auto_t *o = NULL;
	struct err e = {};
	size_t limit = 0;

	if (!why_path(c, a, &path, &limit, &e) || !api_call(c, "GET", path.data, NULL, &o, &e))
		return ctl_fail(&e);
	if (!render_is_text(c))
		return render_object(c, o);
	if (json_is_object(json_object_get(o, "run")))
		put_run_why(c, json_object_get(o, "run"), &out);
	else if (json_is_object(json_object_get(o, "at")))
		put_why_at(c, json_object_get(o, "at"), &out);
	else
		put_job_why(c, o, limit, &out);
	return render_text(&out);
}
