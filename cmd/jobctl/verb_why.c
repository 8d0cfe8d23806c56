/* SPDX-License-Identifier: Apache-2.0 */
/* jobctl why: what became of the last slots, what is waiting for what, when it runs next. */
#include "api.h"
#include "args.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "ctl.h"
#include "filters.h"
#include "out.h"
#include "run_verb.h"
#include "table.h"
#include "words.h"
#include <inttypes.h>
#include <string.h>

/* Times inside a sentence stay as they are: a sentence is for reading once, and may be pasted. */
static void put_reason(const json_t *why, const char *margin, struct buf *out)
{
	const char *message = member_text(why, "message"), *command = member_text(why, "command");

	text_escape(out, message ? message : "", message ? strlen(message) : 0);
	buf_char(out, '\n');
	if (command)
		buf_printf(out, "%s(%s)\n", margin, command);
}

static void put_when(const struct ctl *c, const json_t *o, const char *key, struct buf *out)
{
	usec_t t = member_time(o, key);
	char text[WORDS_MAX];

	buf_str(out, member_text(o, key));
	if (c->terminal)
		buf_printf(out, "  %s", words_relative(t, c->now, text));
}

static void put_run(const struct ctl *c, const json_t *run, struct buf *out)
{
	AUTO_DONE(buf) ref = {};

	ref_of_run(run, &ref);
	buf_str(out, "  ");
	put_when(c, run, "slot", out);
	buf_printf(out, "  %s  %s\n    ", ref.data, member_text(run, "state"));
	put_reason(json_object_get(run, "why"), "    ", out);
}

static void put_next(const struct ctl *c, const json_t *slots, struct buf *out)
{
	const json_t *slot;
	size_t i;

	json_array_foreach(slots, i, slot) {
		json_auto_t *o = json_pack("{s:O}", "at", slot);

		buf_str(out, i ? "       " : "next:  ");
		put_when(c, o, "at", out);
		buf_char(out, '\n');
	}
}

static void put_no_next(const json_t *slots, struct buf *out)
{
	if (json_array_size(slots) == 0)
		buf_str(out, "next:  none before that ends\n");
}

static void put_job(const struct ctl *c, const json_t *o, struct buf *out)
{
	const json_t *runs = json_object_get(o, "runs"), *run;
	const char *now = member_text(json_object_get(o, "now"), "code");
	size_t i;

	buf_printf(out, "job %" PRId64, member_int(o, "job"));
	if (member_text(o, "name"))
		buf_printf(out, " '%s'", member_text(o, "name"));
	buf_printf(out, " is %s\nnow:   ", member_text(o, "state"));
	put_reason(json_object_get(o, "now"), "       ", out);
	put_next(c, json_object_get(o, "next"), out);
	if (text_equal(now, "paused") || text_equal(now, "frozen"))
		put_no_next(json_object_get(o, "next"), out);
	if (json_array_size(runs) > 0)
		buf_str(out, "last slots:\n");
	json_array_foreach(runs, i, run)
		put_run(c, run, out);
}

static void put_moment(const struct ctl *c, const json_t *at, struct buf *out)
{
	const json_t *run = json_object_get(at, "run");

	if (json_is_object(run))
		put_run(c, run, out);
	else
		put_reason(json_object_get(at, "why"), "", out);
}

static bool make_path(struct ctl *c, const struct args *a, struct buf *path, struct err *e)
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
		query_add(path, "run", number);
	}
	if (!filter_limit(a, ref.run || args_last(a, "at") ? 0 : 10, &limit, e) || !filter_time(path, a, "at", c->now, e))
		return false;
	if (limit > 100)
		return err_set(e, ERR_INVALID, "--limit: at most 100; 'jobctl runs %s' shows more", words[0]);
	snprintf(number, sizeof(number), "%zu", limit);
	query_add(path, "limit", number);
	return true;
}

int verb_why(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) path = {};
	AUTO_DONE(buf) out = {};
	json_auto_t *o = NULL;
	struct err e = {};

	if (!make_path(c, a, &path, &e) || !api_call(c, "GET", path.data, NULL, &o, &e))
		return ctl_fail(&e);
	if (c->format != FORMAT_TABLE && c->format != FORMAT_WIDE)
		return out_object(c, o);
	if (json_is_object(json_object_get(o, "run")))
		put_run(c, json_object_get(o, "run"), &out);
	else if (json_is_object(json_object_get(o, "at")))
		put_moment(c, json_object_get(o, "at"), &out);
	else
		put_job(c, o, &out);
	return out_text(&out);
}
