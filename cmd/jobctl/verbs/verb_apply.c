/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl apply' and 'jobctl diff'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/defs/definition.h"
#include "jobctl/defs/definition_file.h"
#include "jobctl/local_zone.h"
#include "jobctl/member.h"
#include "jobctl/progress.h"
#include "jobctl/render/render.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/spec/spec_form.h"
#include "jobctl/verbs/verbs.h"
#include "jobctl/warrant_supply.h"
#include <inttypes.h>
#include <string.h>

#define PRUNED_SHOWN 10 /* names in the question */

struct applying {
	struct ctl *c;
	const char *owner; /* NULL: the caller */
	struct definition_list defs;
	json_t *body;      /* owned: the request */
};

static void applying_done(struct applying *x)
{
	definition_list_done(&x->defs);
	json_decref(x->body);
}

/* ---- request ---- */

/* As with 'jobctl add', a schedule is in the zone of the user unless the definition names one. */
static void add_zones(struct definition_list *l)
{
	AUTO_TEXT zone = local_zone();

	for (size_t i = 0; i < l->n; i++)
		if (!json_object_get(l->v[i].o, "tz"))
			json_object_set_new(l->v[i].o, "tz", json_string(zone));
}

static bool read_set(struct applying *x, const struct args *a, bool apply, struct err *e)
{
	const char *file = args_last(a, "file"), *set = args_last(a, "set");
	json_t *jobs;

	if (!file)
		return err_set(e, ERR_INVALID, "give the definitions with -f FILE or -f DIRECTORY");
	if (!definition_file_read(file, &x->defs, e))
		return false;
	if (!set)
		set = x->defs.set;
	if (!set && apply && (args_has(a, "prune") || args_has(a, "adopt")))
		return err_set(e, ERR_INVALID,
			"definitions from standard input need a name for the set: --set NAME");
	add_zones(&x->defs);
	jobs = json_array();
	for (size_t i = 0; i < x->defs.n; i++)
		json_array_append(jobs, x->defs.v[i].o);
	x->body = json_pack("{s:o}", "jobs", jobs);
	if (set && json_object_set_new(x->body, "set", json_string(set)) < 0)
		return err_set(e, ERR_INVALID,
			"the name of the set must be UTF-8; give another with --set");
	return true;
}

/* 'doing' is the text of the progress line: "checking". */
static bool call_apply(const struct applying *x, const char *option, const char *doing, json_t **ret,
	struct err *e)
{
	AUTO_TEXT what = xprintf("%s %zu definitions", doing, x->defs.n);
	AUTO(progress) *progress __attribute__((unused)) = progress_new(what);
	AUTO_DONE(buf) path = {};

	buf_str(&path, "/v1/apply");
	if (x->owner)
		api_query_add(&path, "as", x->owner);
	if (option)
		api_query_add(&path, "dry_run", "true");
	if (option && *option)
		api_query_add(&path, option, "true");
	return api_call(x->c, "POST", path.data, x->body, ret, e);
}

/* ---- outcome ---- */

static const char *const outcomes[] = {"created", "changed", "unchanged", "refused"};

static size_t count_outcome(const json_t *answer, const char *outcome)
{
	const json_t *entry;
	size_t i, n = 0;

	json_array_foreach(json_object_get(answer, "entries"), i, entry)
		n += text_equal(member_text(entry, "outcome"), outcome);
	return n;
}

/* The job is and stays a member of another set. */
static bool foreign_set(const struct applying *x, const json_t *entry)
{
	const char *set = member_text(entry, "set");

	return set && !text_equal(set, member_text(x->body, "set"));
}

static void put_entry(const struct applying *x, size_t i, const json_t *entry, struct buf *out)
{
	const char *name = member_text(entry, "name"), *outcome = member_text(entry, "outcome");
	const char *why = member_text(json_object_get(entry, "error"), "message");
	const char *what = member_text(entry, "what");

	buf_printf(out, "%-9s  %s", outcome, name ? name : "-");
	if (member_int(entry, "id"))
		buf_printf(out, " (job %" PRId64 ")", member_int(entry, "id"));
	if (json_is_true(json_object_get(entry, "adopted")))
		buf_str(out, ", joins the set");
	else if (foreign_set(x, entry))
		buf_printf(out, ", member of the set '%s'", member_text(entry, "set"));
	if (what) {
		buf_str(out, ": ");
		text_escape(out, what, strlen(what));
	}
	if (why) {
		buf_str(out, ": ");
		text_escape(out, why, strlen(why));
	}
	if (why || x->c->format == FORMAT_WIDE) {
		buf_str(out, "  [");
		text_escape(out, x->defs.v[i].where, strlen(x->defs.v[i].where));
		buf_char(out, ']');
	}
	buf_char(out, '\n');
}

/* The unchanged entries are listed with -o wide only. */
static void put_outcome(const struct applying *x, const json_t *answer, struct buf *out)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(answer, "entries"), i, entry)
		if (x->c->format == FORMAT_WIDE || json_is_true(json_object_get(entry, "adopted")) ||
			!text_equal(member_text(entry, "outcome"), "unchanged"))
			put_entry(x, i, entry, out);
	json_array_foreach(json_object_get(answer, "pruned"), i, entry)
		buf_printf(out, "%-9s  %s (job %" PRId64 ")\n", "pruned",
			member_text(entry, "name") ? member_text(entry, "name") : "-",
			member_int(entry, "id"));
}

/* "3 created, 1 changed, 20 unchanged, 0 refused, 2 pruned" */
static void say_summary(const struct applying *x, const json_t *answer, const char *note)
{
	AUTO_DONE(buf) line = {};

	for (size_t i = 0; i < ELEMENTS(outcomes); i++)
		buf_printf(&line, "%zu %s, ", count_outcome(answer, outcomes[i]), outcomes[i]);
	buf_printf(&line, "%zu pruned", json_array_size(json_object_get(answer, "pruned")));
	if (x->defs.ignored)
		buf_printf(&line, "; %zu files do not end in .json or .jsonl and were ignored",
			x->defs.ignored);
	ctl_say("%s%s", line.data, note);
}

/* The answer with the source of each entry and the sums, for programs. */
static int show_json(const struct applying *x, json_t *answer)
{
	json_t *summary = json_object(), *entry;
	size_t i;

	json_array_foreach(json_object_get(answer, "entries"), i, entry)
		json_object_set_new(entry, "source", json_string(x->defs.v[i].where));
	for (i = 0; i < ELEMENTS(outcomes); i++)
		json_object_set_new(summary, outcomes[i],
			json_integer((json_int_t)count_outcome(answer, outcomes[i])));
	json_object_set_new(summary, "pruned",
		json_integer((json_int_t)json_array_size(json_object_get(answer, "pruned"))));
	json_object_set_new(summary, "ignored_files", json_integer((json_int_t)x->defs.ignored));
	json_object_set_new(answer, "summary", summary);
	return render_object(x->c, answer);
}

static int show_outcome(const struct applying *x, json_t *answer, const char *note)
{
	AUTO_DONE(buf) out = {};
	bool refused = count_outcome(answer, "refused") > 0;

	if (render_wants_json(x->c)) {
		show_json(x, answer);
	} else {
		put_outcome(x, answer, &out);
		render_flush(&out);
		say_summary(x, answer, refused ? "; nothing was applied" : note);
	}
	return refused ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- prune ---- */

static bool confirm_prune(const json_t *pruned, bool yes, struct err *e)
{
	size_t n = json_array_size(pruned);
	AUTO_DONE(buf) question = {};

	if (n == 0 || yes)
		return true;
	if (!ctl_can_ask())
		return err_set(e, ERR_INVALID,
			"nothing was applied: --prune would remove %zu jobs, and without a terminal it needs "
			"--yes ('--prune --dry-run' lists them)",
			n);
	buf_printf(&question, "remove %zu jobs:", n);
	for (size_t i = 0; i < n && i < PRUNED_SHOWN; i++) {
		const char *name = member_text(json_array_get(pruned, i), "name");

		buf_printf(&question, "%s %s", i ? "," : "", name ? name : "-");
	}
	buf_str(&question, n > PRUNED_SHOWN ? ", …?" : "?");
	return ctl_ask(question.data) || err_set(e, ERR_INTERNAL, "nothing was applied");
}

/* ---- warrants ---- */

/* Asks the spawner to approve the definitions of the files; they are the user's own. */
static bool supply_warrants(struct applying *x, const json_t *plan, struct err *e)
{
	AUTO(progress) *progress __attribute__((unused)) = progress_new("approving definitions");
	const json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(plan, "entries"), i, entry) {
		if (!json_is_true(json_object_get(entry, "needs_warrant")))
			continue;
		if (!warrant_supply_definition(x->c, x->owner, x->defs.v[i].o, e))
			return err_wrap(e, "%s", x->defs.v[i].where);
	}
	return true;
}

static int apply_set(struct applying *x, const struct args *a, struct err *e)
{
	json_auto_t *plan = NULL, *answer = NULL;

	if (!call_apply(x, "", "checking", &plan, e))
		return ctl_fail(e);
	if (args_has(a, "dry-run"))
		return show_outcome(x, plan, "; nothing was changed (--dry-run)");
	if (count_outcome(plan, "refused") > 0)
		return show_outcome(x, plan, "");
	if (!confirm_prune(json_object_get(plan, "pruned"), args_has(a, "yes"), e) ||
		!supply_warrants(x, plan, e))
		return ctl_fail(e);
	if (!call_apply(x, NULL, "applying", &answer, e)) {
			if (e->kind == ERR_UNCERTAIN)
			err_set(e, e->kind, "%s; the set may or may not have been applied: repeat the command",
				e->msg);
		return ctl_fail(e);
	}
	return show_outcome(x, answer, "");
}

int verb_apply(struct ctl *c, const struct args *a)
{
	AUTO_DONE(applying) x = {.c = c, .owner = args_last(a, "owner")};
	struct err e = {};

	if (!read_set(&x, a, true, &e))
		return ctl_fail(&e);
	json_object_set_new(x.body, "prune", json_boolean(args_has(a, "prune")));
	json_object_set_new(x.body, "adopt", json_boolean(args_has(a, "adopt")));
	return apply_set(&x, a, &e);
}

/* ---- diff ---- */

static bool put_form(const json_t *definition, bool reveal, struct buf *out, struct err *e)
{
	AUTO_DONE(job_spec) spec;

	job_spec_init(&spec);
	if (!job_object_read_spec(definition, &spec, e))
		return false;
	spec_form_write(&spec, reveal ? NULL : job_env_secret, out);
	return true;
}

static bool put_difference(const struct applying *x, size_t i, const json_t *entry, bool reveal,
	struct buf *out, struct err *e)
{
	AUTO_DONE(buf) before = {};
	AUTO_DONE(buf) after = {};
	bool created = text_equal(member_text(entry, "outcome"), "created");

	put_entry(x, i, entry, out);
	if (created) {
		json_auto_t *o = definition_of_job(x->defs.v[i].o, reveal, e);

		if (!o || !put_form(o, reveal, &after, e))
			return false;
	} else if (!put_form(json_object_get(entry, "before"), reveal, &before, e) ||
		   !put_form(json_object_get(entry, "after"), reveal, &after, e)) {
		return false;
	}
	definition_diff(&before, &after, out);
	return true;
}

static bool put_differences(const struct applying *x, const json_t *answer, bool reveal,
	struct buf *out, struct err *e)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(answer, "entries"), i, entry) {
		const char *outcome = member_text(entry, "outcome");

		if (text_equal(outcome, "refused"))
			put_entry(x, i, entry, out);
		else if (!text_equal(outcome, "unchanged") && !put_difference(x, i, entry, reveal, out, e))
			return false;
	}
	json_array_foreach(json_object_get(answer, "pruned"), i, entry)
		buf_printf(out, "only in the store  %s (job %" PRId64 "): 'jobctl apply --prune' removes it\n",
			member_text(entry, "name") ? member_text(entry, "name") : "-",
			member_int(entry, "id"));
	return true;
}

int verb_diff(struct ctl *c, const struct args *a)
{
	AUTO_DONE(applying) x = {.c = c, .owner = args_last(a, "owner")};
	json_auto_t *answer = NULL;
	AUTO_DONE(buf) out = {};
	struct err e = {};
	bool same;

	if (!read_set(&x, a, false, &e))
		return ctl_fail(&e);
	json_object_set_new(x.body, "prune", json_boolean(json_object_get(x.body, "set")));
	if (!call_apply(&x, "definitions", "comparing", &answer, &e))
		return ctl_fail(&e);
	same = count_outcome(answer, "unchanged") == x.defs.n &&
	       json_array_size(json_object_get(answer, "pruned")) == 0;
	if (render_wants_json(c)) {
		show_json(&x, answer);
	} else {
		if (!put_differences(&x, answer, args_has(a, "reveal"), &out, &e))
			return ctl_fail(&e);
		render_flush(&out);
		if (!same)
			say_summary(&x, answer, "");
	}
	return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
