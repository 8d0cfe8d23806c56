/* SPDX-License-Identifier: Apache-2.0 */
/* Decides for each definition of a set whether its job is new, changed or the same. */
#include "daemon/api/submit/apply_plan.h"
#include "base/auto.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "core/job/warrant.h"
#include "core/time/zone_cache.h"
#include "daemon/api/submit/job_change.h"
#include "store/ops/job/job_apply.h"
#include "store/ops/job/jobs.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_PER_JOB 50 /* average number of values per definition */

void apply_plan_done(struct apply_plan *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].change)
			job_change_done(p->v[i].change);
		free(p->v[i].change);
		free(p->v[i].asked);
		free(p->v[i].err);
	}
	free(p->v);
	submission_done(&p->s);
	applied_list_done(&p->known);
	applied_list_done(&p->pruned);
	json_decref(p->body);
	free(p->set);
	*p = (struct apply_plan){};
}

/* ---- body ---- */

static bool check_set(const char *set, struct err *e)
{
	size_t len = strlen(set);

	if (len == 0 || len > APPLY_SET_MAX)
		return err_field(e, "set", "'set' must be the name of the set, 1 to %d bytes", APPLY_SET_MAX);
	for (const char *c = set; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return err_field(e, "set", "the name of the set contains control characters");
	return true;
}

static bool read_apply_body(struct apply_plan *p, struct err *e)
{
	struct submission *s = &p->s;
	json_t *jobs = NULL;
	const char *set = NULL;
	json_error_t je;
	int prune = 0, adopt = 0;

	p->body = json_read_bounded(s->body.data, s->body.len, s->max_body,
		JSON_MEMBERS_MAX + s->max_jobs * MEMBERS_PER_JOB, e);
	buf_done(&s->body);
	if (!p->body)
		return false;
	if (json_unpack_ex(p->body, &je, JSON_STRICT, "{s?s, s?b, s?b, s:o}", "set", &set, "prune",
		    &prune, "adopt", &adopt, "jobs", &jobs) != 0 ||
		!json_is_array(jobs))
		return err_field(e, "jobs",
			"the body must be {\"set\":\"NAME\",\"prune\":BOOL,\"adopt\":BOOL,\"jobs\":[…]}%s%s",
			je.text[0] ? ": " : "", je.text);
	if (json_array_size(jobs) > s->max_jobs) {
		err_field(e, "jobs",
			"%zu definitions are too many, the limit is %zu (bulk-jobs in jobschedd.conf)",
			json_array_size(jobs), s->max_jobs);
		if (e)
			e->kind = ERR_TOO_LARGE;
		return false;
	}
	p->set = xstrdup(set);
	p->prune = prune;
	p->adopt = adopt;
	p->n = json_array_size(jobs);
	p->v = xcalloc(p->n ? p->n : 1, sizeof(*p->v));
	submission_allocate(s, p->n);
	if (!set && (prune || adopt))
		return err_field(e, "set", "'%s' needs the name of a set", prune ? "prune" : "adopt");
	return !set || check_set(set, e);
}

/* ---- entries ---- */

static void refuse_entry(struct apply_plan *p, size_t i, const struct err *why)
{
	struct apply_entry *v = &p->v[i];

	v->outcome = APPLY_REFUSED;
	v->err = xcalloc(1, sizeof(*v->err));
	*v->err = *why;
	p->refused++;
}

static json_t *entry_json(const struct apply_plan *p, size_t i)
{
	return json_array_get(json_object_get(p->body, "jobs"), i);
}

static int by_name(const void *a, const void *b)
{
	const struct apply_entry *const *x = a, *const *y = b;
	int order = strcmp((*x)->name, (*y)->name);

	return order ? order : *x < *y ? -1 : 1; /* equal names keep the order of the body */
}

/* The entries with a name, sorted by name; caller frees. */
static struct apply_entry **sort_entries(struct apply_plan *p, size_t *ret_n)
{
	struct apply_entry **sorted = xcalloc(p->n ? p->n : 1, sizeof(*sorted));

	*ret_n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].name)
			sorted[(*ret_n)++] = &p->v[i];
	qsort(sorted, *ret_n, sizeof(*sorted), by_name);
	return sorted;
}

static void read_names(struct apply_plan *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const char *name = json_string_value(json_object_get(entry_json(p, i), "name"));
		struct err why = {};

		if (!name)
			err_field(&why, "name",
				"a definition needs a name: it is how the job is found again");
		else if (job_name_check(name, &why))
			p->v[i].name = name;
		if (why.kind)
			refuse_entry(p, i, &why);
	}
}

static struct apply_entry *find_entry(struct apply_entry **sorted, size_t n, const char *name)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(sorted[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && strcmp(sorted[low]->name, name) == 0 ? sorted[low] : NULL;
}

/* A live job has precedence over finished ones, and of those the newest. */
static bool preferred(const struct applied_job *than, const struct applied_job *a)
{
	return !than || than->job.state >= JOB_FINISHED ||
	       a->job.state < JOB_FINISHED;
}

static bool match_jobs(struct apply_plan *p, struct store *s, struct err *e)
{
	AUTO_DONE(strv) names = {};
	struct apply_entry **sorted;
	bool ok = true;
	size_t n;

	sorted = sort_entries(p, &n);
	for (size_t i = 0; i < n; i++) {
		struct err why = {};

		strv_add(&names, sorted[i]->name);
		if (i == 0 || strcmp(sorted[i]->name, sorted[i - 1]->name) != 0)
			continue;
		err_field(&why, "name", "the name '%s' occurs twice in the set", sorted[i]->name);
		refuse_entry(p, (size_t)(sorted[i] - p->v), &why);
	}
	ok = applied_by_name(s, p->s.uid, &names, &p->known, e) &&
	     (!p->prune || applied_members(s, p->s.uid, p->set, &p->pruned, e));
	for (size_t i = 0; ok && i < p->known.n; i++) {
		struct apply_entry *v = find_entry(sorted, n, p->known.v[i].job.name);

		if (v && preferred(v->now, &p->known.v[i]))
			v->now = &p->known.v[i];
	}
	/* what has an entry is not pruned */
	for (size_t i = p->pruned.n; ok && i-- > 0;) {
		struct applied_job *member = &p->pruned.v[i];

		if (!member->job.name || !find_entry(sorted, n, member->job.name))
			continue;
		free(member->job.name);
		*member = p->pruned.v[--p->pruned.n];
	}
	free(sorted);
	return ok;
}

/* ---- values that are not in the file ---- */

static const char *pair_value(const struct strv *pairs, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < pairs->n; i++)
		if (strncmp(pairs->v[i], name, len) == 0 && pairs->v[i][len] == '=')
			return pairs->v[i] + len + 1;
	return NULL;
}

/* A value that is not UTF-8 stays null and is refused by the reader of the definition. */
static json_t *kept_value(const char *value, bool coded)
{
	AUTO_DONE(buf) text = {};
	json_t *v;

	if (coded)
		buf_base64(&text, value, strlen(value));
	v = json_string(coded ? (text.data ? text.data : "") : value);
	return v ? v : json_null();
}

/*
 * 'jobctl export' writes null instead of the value of a variable that looks like a secret: the
 * stored value is kept.
 */
static bool keep_values(json_t *map, const char *member, bool coded, const struct strv *stored,
	struct err *e)
{
	const char *name;
	json_t *v;
	void *next;

	json_object_foreach_safe(map, next, name, v) {
		const char *value = stored ? pair_value(stored, name) : NULL;
		AUTO_TEXT path = xprintf("%s.%.40s", member, name);

		if (!json_is_null(v))
			continue;
		if (!value)
			return err_field(e, path,
				"'%s' has no value, and there is no stored one to keep; write the value "
				"('jobctl export --reveal' does), or read it from a file with 'secrets'",
				path);
		json_object_set_new(map, name, kept_value(value, coded));
	}
	return true;
}

static bool keep_secret_values(json_t *o, const struct job_spec *stored /* NULL: none */,
	struct err *e)
{
	const struct strv *env = stored ? &stored->env : NULL, *params = stored ? &stored->params : NULL;

	return keep_values(json_object_get(o, "env"), "env", false, env, e) &&
	       keep_values(json_object_get(o, "env_b64"), "env_b64", true, env, e) &&
	       keep_values(json_object_get(o, "params"), "params", false, params, e) &&
	       keep_values(json_object_get(o, "params_b64"), "params_b64", true, params, e);
}

/* ---- one entry ---- */

static bool plan_new(struct apply_plan *p, struct store *s, size_t i, struct zone_cache *zones,
	struct err *e)
{
	struct apply_entry *v = &p->v[i];
	struct job_new *new = &p->s.jobs[i];

	if (!keep_secret_values(entry_json(p, i), NULL, e) ||
		!submission_prepare_job(&p->s, i, entry_json(p, i), zones, e))
		return false;
	new->owner = p->s.owner;
	v->outcome = APPLY_CREATED;
	if (!p->dry_run)
		return true;
	v->warrant_missing = warrant_needed(p->warrants, owner_uid(p->s.uid));
	return job_dry_run(s, new, e);
}

/* The API shows the queue 'default' of a job whose definition names no queue. */
static void keep_default_queue(struct job_spec *want, const struct job_spec *stored)
{
	const char *a = want->queue ? want->queue : QUEUE_DEFAULT;
	const char *b = stored->queue ? stored->queue : QUEUE_DEFAULT;

	if (strcmp(a, b) != 0)
		return;
	free(want->queue);
	want->queue = xstrdup(stored->queue);
}

/* The definition that the entry gives to an existing job. */
static bool read_replacement(struct apply_plan *p, size_t i, struct job_spec *ret, struct err *e)
{
	const struct apply_entry *v = &p->v[i];
	AUTO_DONE(job_spec) stored;

	job_spec_init(&stored);
	if (!spec_json_from_text(v->now->job.spec, &stored, e) ||
		!keep_secret_values(entry_json(p, i), &stored, e) ||
		!spec_json_read(entry_json(p, i), ret, NULL, e) || !job_spec_check(ret, e))
		return false;
	keep_default_queue(ret, &stored);
	return submission_check_owner(&p->s, ret, &stored.env, e);
}

static bool plan_change(struct apply_plan *p, struct store *s, size_t i, struct job_spec *want,
	struct zone_cache *zones, struct err *e)
{
	struct apply_entry *v = &p->v[i];
	struct job_change *c = v->change = xcalloc(1, sizeof(*c));

	*c = (struct job_change){.job = &v->now->job,
		.now = p->s.now,
		.warrants = p->warrants,
		.preview = p->dry_run,
		.sandboxes = p->s.sandboxes,
		.limits_refused = p->s.limits_refused,
		.calls = p->s.calls};
	if (!job_change_replace(c, want, zones, e))
		return false;
	v->outcome = c->changed ? APPLY_CHANGED : APPLY_UNCHANGED;
	v->warrant_missing = c->changed && c->warrant_missing;
	c->change.uid = p->scope;
	c->change.to.asked = v->asked;
	c->change.to.limit = p->s.jobs_limit;
	c->change.to.bytes_limit = p->s.bytes_limit;
	return !c->changed || !p->dry_run || job_change_dry_run(s, &c->change, e);
}

static bool plan_existing(struct apply_plan *p, struct store *s, size_t i, struct zone_cache *zones,
	struct err *e)
{
	struct apply_entry *v = &p->v[i];
	AUTO_DONE(job_spec) want;

	job_spec_init(&want);
	v->adopted = p->adopt && !text_equal(v->now->set, p->set);
	if (!read_replacement(p, i, &want, e))
		return false;
	v->asked = submission_asked(&want);
	if (v->now->asked && v->now->asked == job_content_digest(p->s.uid, v->asked)) {
		v->outcome = APPLY_UNCHANGED;
		return true;
	}
	return plan_change(p, s, i, &want, zones, e);
}

bool apply_plan_make(struct apply_plan *p, struct store *s, struct zone_cache *zones, struct err *e)
{
	p->s.bulk = p->s.complete = true;
	p->warrants = p->s.warrants;
	if (p->dry_run)
		p->s.warrants = WARRANT_NONE;
	if (!read_apply_body(p, e))
		return false;
	read_names(p);
	if (!match_jobs(p, s, e))
		return false;
	for (size_t i = 0; i < p->n; i++) {
		struct err why = {};

		if (p->v[i].outcome == APPLY_REFUSED)
			continue;
		if (!(p->v[i].now ? plan_existing : plan_new)(p, s, i, zones, &why))
			refuse_entry(p, i, &why);
	}
	return true;
}

/* ---- the operation ---- */

void apply_plan_fill(struct apply_plan *p, struct op_job_apply *o)
{
	o->scope = p->scope;
	o->set = p->set;
	o->now = p->s.now;
	o->add = xcalloc(p->n + 1, sizeof(*o->add));
	o->change = xcalloc(p->n + 1, sizeof(*o->change));
	o->adopt = xcalloc(p->n + 1, sizeof(*o->adopt));
	o->remove = xcalloc(p->pruned.n + 1, sizeof(*o->remove));
	for (size_t i = 0; i < p->n; i++) {
		struct apply_entry *v = &p->v[i];

		if (v->outcome == APPLY_CREATED) {
			v->at = o->n_add;
			o->add[o->n_add++] = p->s.jobs[i];
		}
		if (v->outcome == APPLY_CHANGED) {
			v->at = o->n_change;
			o->change[o->n_change++] = &v->change->change;
		}
		if (v->now && v->adopted)
			o->adopt[o->n_adopt++] = v->now->job.id;
	}
	for (size_t i = 0; i < p->pruned.n; i++)
		o->remove[o->n_remove++] = p->pruned.v[i].job.id;
}

void apply_plan_refusal(const struct apply_plan *p, struct err *e)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].outcome == APPLY_REFUSED) {
			*e = *p->v[i].err;
			submission_error_field(e, i);
			return;
		}
}

void apply_plan_failed(const struct apply_plan *p, const struct op_job_apply *o, struct err *e)
{
	enum apply_outcome wanted = o->part == JOB_APPLY_ADD ? APPLY_CREATED : APPLY_CHANGED;

	if (o->part == JOB_APPLY_REMOVE) {
		err_wrap(e, "cannot remove job %" PRId64, o->remove[o->failed]);
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].outcome == wanted && p->v[i].at == o->failed)
			submission_error_field(e, i);
}

/* ---- the answer ---- */

static const char *const outcome_names[APPLY_OUTCOME_MAX] = {[APPLY_CREATED] = "created",
	[APPLY_CHANGED] = "changed",
	[APPLY_UNCHANGED] = "unchanged",
	[APPLY_REFUSED] = "refused"};

static void write_definition(const char *member, const char *spec /* canonical JSON */,
	struct buf *out)
{
	json_auto_t *o = json_loads(spec, 0, NULL);
	AUTO_DONE(buf) text = {};

	json_object_del(o, "warrant");
	json_value_write(o, &text);
	buf_printf(out, ",\"%s\":%s", member, text.data ? text.data : "null");
}

static void write_number(const char *member, int64_t n, struct buf *out)
{
	if (n)
		buf_printf(out, ",\"%s\":%" PRId64, member, n);
	else
		buf_printf(out, ",\"%s\":null", member);
}

static void write_entry(const struct apply_plan *p, size_t i, const struct op_job_apply *o,
	struct buf *out)
{
	const struct apply_entry *v = &p->v[i];
	const struct job_new *new = o && v->outcome == APPLY_CREATED ? &o->add[v->at] : NULL;
	const struct op_job_change *c = v->outcome == APPLY_CHANGED ? &v->change->change : NULL;

	buf_printf(out, "%s{\"outcome\":\"%s\",\"name\":", i ? "," : "", outcome_names[v->outcome]);
	buf_json_str(out, v->name);
	write_number("id", new ? new->id : v->now ? v->now->job.id : 0, out);
	write_number("revision", new ? 1 : c ? c->revision : v->now ? v->now->job.revision : 0, out);
	write_number("run", new ? new->run : 0, out);
	buf_str(out, ",\"what\":");
	buf_json_str(out, c ? v->change->what : NULL);
	buf_str(out, ",\"set\":");
	buf_json_str(out, v->outcome == APPLY_REFUSED ? NULL : v->now && !v->adopted ? v->now->set : p->set);
	buf_printf(out, ",\"adopted\":%s,\"needs_warrant\":%s",
		v->adopted && v->outcome != APPLY_REFUSED ? "true" : "false",
		v->warrant_missing ? "true" : "false");
	if (v->err) {
		buf_printf(out, ",\"error\":{\"code\":\"%s\",\"message\":",
			err_kind_info(v->err->kind)->code);
		buf_json_str(out, v->err->msg);
		buf_str(out, ",\"field\":");
		buf_json_str(out, v->err->field[0] ? v->err->field : NULL);
		buf_char(out, '}');
	} else {
		buf_str(out, ",\"error\":null");
	}
	if (p->definitions && c) {
		write_definition("before", v->now->job.spec, out);
		write_definition("after", v->change->text, out);
	}
	buf_char(out, '}');
}

void apply_plan_write(const struct apply_plan *p, const struct op_job_apply *o, struct buf *out)
{
	buf_str(out, "{\"set\":");
	buf_json_str(out, p->set);
	buf_printf(out, ",\"applied\":%s,\"entries\":[", o ? "true" : "false");
	for (size_t i = 0; i < p->n; i++)
		write_entry(p, i, o, out);
	buf_str(out, "],\"pruned\":[");
	for (size_t i = 0; i < p->pruned.n; i++) {
		buf_printf(out, "%s{\"id\":%" PRId64 ",\"name\":", i ? "," : "", p->pruned.v[i].job.id);
		buf_json_str(out, p->pruned.v[i].job.name);
		buf_char(out, '}');
	}
	buf_str(out, "]}\n");
}
