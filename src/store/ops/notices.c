/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody is to be told: written with the end of the run it is about, kept until it was sent. */
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/store_private.h"
#include <inttypes.h>
#include <string.h>

#define PRUNE_STEP 20                 /* old ones removed at a time */
#define NOTICE_KEPT (30 * USEC_DAY)   /* after they were sent, or given up */
#define TESTS_WAITING_MAX 1000        /* waiting notices of an owner, beyond which it gets no test notice */
#define EXAMINE_MAX 1000              /* rows looked at for one page */

/* ---- who is told of the ends of a transaction ---- */

struct noted {
	int64_t job;
	struct run_outcome o;
};

void outcome_note(struct store *s, const struct outcome *o)
{
	enum health health;

	if (!o->notifies || !notice_health_of(o->state, o->reason, &health))
		return;
	s->noted = xgrow(s->noted, s->n_noted, sizeof(*s->noted));
	s->noted[s->n_noted++] = (struct noted){o->job, {o->run, health, o->slot, o->at, o->took}};
}

size_t outcome_mark(const struct store *s)
{
	return s->n_noted;
}

void outcome_rewind(struct store *s, size_t mark)
{
	if (s->n_noted > mark)
		s->n_noted = mark;
}

struct healths {
	struct map by_job; /* struct job_health, owned */
};

static void healths_done(struct healths *l)
{
	struct job_health *h;

	for (size_t i = 0; (h = map_next(&l->by_job, &i));)
		free(h);
	map_done(&l->by_job);
}

static void read_health(struct query *q, struct job_health *h)
{
	h->bad = (enum health)query_get_int(q);
	h->since = query_get_int(q);
	h->slot = query_get_int(q);
	h->last_success = query_get_int(q);
	h->typical = query_get_int(q);
}

static bool healths_read(struct store *s, struct healths *ret, struct err *e)
{
	AUTO_DONE(map) seen = {};
	AUTO_SET jobs = {};
	AUTO_QUERY q = {};

	for (size_t i = 0; i < s->n_noted; i++)
		if (!map_get(&seen, s->noted[i].job)) {
			map_put(&seen, s->noted[i].job, s);
			set_id(&jobs, s->noted[i].job);
		}
	q = query_start(s->db, Q_HEALTH_TAKE, e);
	query_text(&q, set_json(&jobs));
	while (query_row(&q)) {
		struct job_health *h = xcalloc(1, sizeof(*h));
		int64_t job = query_get_int(&q);

		read_health(&q, h);
		map_put(&ret->by_job, job, h);
	}
	return !q.failed;
}

static void describe_notice(struct set *set, int64_t job, int64_t run, enum notice_kind kind,
	const struct job_health *before, usec_t now)
{
	AUTO_TEXT detail = xprintf("{\"last_success\":%" PRId64 ",\"since\":%" PRId64 ",\"typical\":%" PRId64 "}",
		before->last_success, before->since, before->typical);

	set_item(set);
	set_int(set, "job", job);
	set_int(set, "run", run);
	set_text(set, "what", notice_kind_name(kind));
	set_int(set, "now", now);
	set_text(set, "detail", detail);
}

static bool insert_notices(struct store *s, struct set *set, struct set *ret_ids, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, Q_NOTICES_INSERT, e);
	query_text(&q, set_json(set));
	while (query_row(&q)) {
		int64_t id = query_get_int(&q);

		counter_change(s, COUNT_NOTICES, NOTICE_WAITING, "", 1);
		if (ret_ids)
			set_id(ret_ids, id);
	}
	return !q.failed;
}

static void describe_health(struct set *set, int64_t job, const struct job_health *h)
{
	set_item(set);
	set_int(set, "job", job);
	set_int(set, "bad", h->bad);
	set_int(set, "since", h->since);
	set_int(set, "slot", h->slot);
	set_int(set, "last_success", h->last_success);
	set_int(set, "typical", h->typical);
}

bool outcomes_write(struct store *s, struct err *e)
{
	AUTO_DONE(healths) healths = {};
	AUTO_SET notices = {};
	AUTO_SET moved = {};

	if (s->n_noted == 0)
		return true;
	if (!healths_read(s, &healths, e))
		return false;
	for (size_t i = 0; i < s->n_noted; i++) {
		const struct noted *n = &s->noted[i];
		struct job_health *h = map_get(&healths.by_job, n->job), before = *h;
		enum notice_kind kind = notice_health_update(h, &n->o);

		if (kind != NOTICE_KIND_NONE)
			describe_notice(&notices, n->job, n->o.run, kind, &before, n->o.at);
	}
	for (size_t i = 0; i < s->n_noted; i++) {
		struct job_health *h = map_take(&healths.by_job, s->noted[i].job);

		if (h)
			describe_health(&moved, s->noted[i].job, h);
		free(h);
	}
	s->n_noted = 0;
	return set_execute(s, Q_HEALTH_PUT, &moved, e) && insert_notices(s, &notices, NULL, e);
}

/* ---- rows ---- */

static struct notice *row_notice(struct query *q)
{
	struct notice *n = xcalloc(1, sizeof(*n));
	const char *what;

	n->id = query_get_int(q);
	n->job = query_get_int(q);
	n->job_name = query_get_copy(q);
	n->run = query_get_int(q);
	n->uid = query_get_int(q);
	n->owner = query_get_copy(q);
	what = query_get_text(q);
	if (!what || !notice_kind_parse(what, &n->kind))
		n->kind = NOTICE_KIND_NONE;
	n->channel = query_get_copy(q);
	n->state = (enum notice_state)query_get_int(q);
	n->tries = query_get_int(q);
	n->created_at = query_get_int(q);
	n->due_at = query_get_int(q);
	n->done_at = query_get_int(q);
	n->detail = query_get_copy(q);
	n->error = query_get_copy(q);
	return n;
}

static void notice_list_add(struct notice_list *l, struct notice *n)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = n;
}

bool notices_read(struct store *s, struct set *ids, struct notice_list *ret, struct err *e)
{
	AUTO_QUERY q = {};

	if (ids->n == 0)
		return true;
	q = query_start(s->db, Q_NOTICES_GET, e);
	query_text(&q, set_json(ids));
	while (query_row(&q))
		notice_list_add(ret, row_notice(&q));
	return !q.failed;
}

/* ---- operations ---- */

static bool get_health(struct store *s, int64_t job, struct job_health *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_HEALTH_GET, e);

	query_int(&q, job);
	if (query_row(&q))
		read_health(&q, ret);
	return !q.failed;
}

static bool notice_job_lock(struct store *s, const struct op_notice_add *a, bool *ret, int64_t *ret_uid, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_LOCK, e);

	query_int(&q, a->job);
	query_int(&q, a->uid);
	*ret = query_row(&q);
	*ret_uid = *ret ? query_get_int(&q) : -1;
	return !q.failed;
}

static bool waiting_notices_count(struct store *s, int64_t uid, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICES_WAITING, e);

	query_int(&q, uid);
	query_int(&q, TESTS_WAITING_MAX);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

static bool notice_insert(struct store *s, struct op *op, struct err *e)
{
	struct op_notice_add *a = &op->notice_add;
	struct job_health health = {};
	AUTO_SET set = {};
	AUTO_SET ids = {};
	int64_t uid, waiting = 0;
	bool found;

	if (!notice_job_lock(s, a, &found, &uid, e) || (a->kind == NOTICE_KIND_TEST && !waiting_notices_count(s, uid, &waiting, e)))
		return false;
	if (!found)
		return op_refuse(op, ERR_NOT_FOUND, "no job %lld", (long long)a->job);
	if (waiting >= TESTS_WAITING_MAX)
		return op_refuse(op, ERR_LIMIT, "the owner of job %lld has %d or more notices that wait; try again when some were sent "
			"('jobctl notices' shows them)", (long long)a->job, TESTS_WAITING_MAX);
	if (!get_health(s, a->job, &health, e))
		return false;
	describe_notice(&set, a->job, a->run, a->kind, &health, a->now);
	if (!insert_notices(s, &set, &ids, e) || !notices_read(s, &ids, &a->added, e))
		return false;
	if (a->kind == NOTICE_KIND_TEST && a->added.n > 0)
		event_add(s, &(struct event_new){.at = a->now, .by = &op->act.by, .what = EVENT_NOTICE_TEST,
			.object = a->added.v[0]->job_name, .job = a->job, .owner = a->added.v[0]->uid});
	return true;
}

bool notice_add_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!notice_insert(s, ops[i], e))
			return false;
	return true;
}

bool notices_drop_old(struct store *s, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICES_DROP, e);

	query_int(&q, now - NOTICE_KEPT);
	query_int(&q, PRUNE_STEP);
	while (query_row(&q))
		counter_change(s, COUNT_NOTICES, query_get_int(&q), "", -1);
	return !q.failed;
}

bool notices_prune(struct store *s, struct set *jobs, struct err *e)
{
	AUTO_QUERY q = {};

	if (jobs->n == 0)
		return true;
	q = query_start(s->db, Q_NOTICES_PRUNE, e);
	query_text(&q, set_json(jobs));
	while (query_row(&q))
		counter_change(s, COUNT_NOTICES, query_get_int(&q), "", -1);
	return !q.failed;
}

/* The channel is named by its kind only: a URL or a command may hold a secret. */
static void note_failure(struct store *s, const struct op_notice_done *d, struct query *q)
{
	struct event_new ev = {.at = d->now, .what = EVENT_NOTICE_FAILED, .result = "failed"};
	AUTO_TEXT channel = NULL;
	AUTO_TEXT detail = NULL;

	ev.owner = query_get_int(q);
	ev.job = query_get_int(q);
	ev.run = query_get_int(q);
	channel = query_get_copy(q);
	detail = xprintf("notice %" PRId64 " by %.*s after %" PRId64 " tries: %s", d->id, (int)strcspn(channel, ":"), channel,
		d->try, d->error ? d->error : "no reason given");
	ev.detail = detail;
	event_add(s, &ev);
}

static bool done(struct store *s, struct op_notice_done *d, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICE_DONE, e);

	query_int(&q, d->id);
	query_int(&q, d->try);
	query_int(&q, d->untried);
	query_int(&q, d->state);
	query_int(&q, d->due_at);
	query_int(&q, d->now);
	query_text(&q, d->error);
	d->stale = !query_row(&q);
	if (q.failed || d->stale || d->state == NOTICE_WAITING)
		return !q.failed;
	counter_move(s, COUNT_NOTICES, NOTICE_WAITING, d->state, "");
	if (d->state == NOTICE_FAILED)
		note_failure(s, d, &q);
	return true;
}

bool notice_done_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!done(s, &ops[i]->notice_done, e))
			return false;
	return true;
}

bool notice_resume_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct op_notice_resume *r = &ops[i]->notice_resume;
		AUTO_SET ids = {};
		AUTO_QUERY q = query_start(s->db, Q_NOTICES_RESUME, e);

		for (size_t k = 0; k < r->n; k++)
			set_id(&ids, r->under_way[k]);
		query_text(&q, r->name);
		query_text(&q, r->node);
		query_int(&q, r->now);
		query_text(&q, set_json(&ids));
		if (!query_finish(&q))
			return false;
	}
	return true;
}

/* ---- reading ---- */

static bool notice_matches(const struct notice_filter *f, const struct notice *n)
{
	return (f->uid < 0 || n->uid == f->uid) && (!f->job || n->job == f->job) &&
	       (!f->states || f->states & 1u << n->state);
}

/* The narrowest of the ways to walk through them; beyond it some rows may have to be passed over. */
static struct query start_page(struct store *s, const struct notice_filter *f, size_t *ret_max, struct err *e)
{
	bool failed = f->states == 1u << NOTICE_FAILED;
	struct query q;

	if (f->job) {
		q = query_start(s->db, Q_NOTICE_PAGE_JOB, e);
		query_int(&q, f->job);
	} else if (failed) {
		q = query_start(s->db, Q_NOTICE_PAGE_FAILED, e);
	} else if (f->uid >= 0) {
		q = query_start(s->db, Q_NOTICE_PAGE_UID, e);
		query_int(&q, f->uid);
	} else {
		q = query_start(s->db, Q_NOTICE_PAGE, e);
	}
	query_int(&q, f->before ? f->before : INT64_MAX);
	*ret_max = (f->states && (f->job || !failed)) || (failed && f->uid >= 0) ? EXAMINE_MAX : f->limit + 1;
	query_int(&q, (int64_t)*ret_max);
	return q;
}

static bool notice_page_read(struct store *s, const struct notice_filter *f, struct notice_list *ret, struct err *e)
{
	size_t examined = 0, max = 0;
	AUTO_QUERY q = start_page(s, f, &max, e);
	int64_t last = 0;

	while (query_row(&q)) {
		AUTO(notice) *n = row_notice(&q);

		if (!notice_matches(f, n)) {
			/* passed over */
		} else if (ret->n == f->limit) {
			ret->next = last;
			return true;
		} else {
			notice_list_add(ret, STEAL(n));
		}
		last = n ? n->id : ret->v[ret->n - 1]->id;
		examined++;
	}
	ret->next = examined == max ? last : 0;
	return !q.failed;
}

bool list_notices_page(struct store *s, const struct notice_filter *f, struct notice_list *ret, struct err *e)
{
	AUTO_DONE(notice_list) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !notice_page_read(s, f, &found, e) || !tx_commit(&tx, e))
		return false;
	*ret = found;
	found = (struct notice_list){};
	return true;
}

static bool revision_spec_read(struct store *s, int64_t job, int64_t revision, char **ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICE_SPEC, e);

	query_int(&q, job);
	query_int(&q, revision);
	*ret = query_row(&q) ? query_get_copy(&q) : NULL;
	return !q.failed;
}

bool store_revision_spec(struct store *s, int64_t job, int64_t revision, char **ret, struct err *e)
{
	AUTO_TEXT spec = NULL;
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !revision_spec_read(s, job, revision, &spec, e) || !tx_commit(&tx, e))
		return false;
	*ret = STEAL(spec);
	return true;
}

static bool node_name_read(struct store *s, const char *engine, char **ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICE_NODE, e);

	query_text(&q, engine);
	*ret = query_row(&q) ? query_get_copy(&q) : NULL;
	return !q.failed;
}

bool store_node_name(struct store *s, const char *engine, char **ret, struct err *e)
{
	AUTO_TEXT name = NULL;
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !node_name_read(s, engine, &name, e) || !tx_commit(&tx, e))
		return false;
	*ret = STEAL(name);
	return true;
}
