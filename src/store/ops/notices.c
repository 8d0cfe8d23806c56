/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody is to be told: written with the end of the run it is about, kept until it was sent. */
#include "store/ops/notices.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/notice.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/op_private.h"
#include "store/outcomes.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <inttypes.h>
#include <string.h>

#define PRUNE_STEP 20                 /* old ones removed at a time */
#define NOTICE_KEPT (30 * USEC_DAY)   /* after they were sent, or given up */
#define TESTS_WAITING_MAX 1000        /* waiting notices of an owner, beyond which it gets no test notice */
#define EXAMINE_MAX 1000              /* rows looked at for one page */

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
		outcome_health_read(&q, ret);
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
	struct op_notice_add *a = notice_add_op(op);
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
	outcome_notice_describe(&set, a->job, a->run, a->kind, &health, a->now);
	if (!outcome_notices_insert(s, &set, &ids, e) || !notices_read(s, &ids, &a->added, e))
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
		if (!done(s, notice_done_op(ops[i]), e))
			return false;
	return true;
}

bool notice_resume_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct op_notice_resume *r = notice_resume_op(ops[i]);
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

void notice_add_reset(struct op *op)
{
	notice_list_done(&notice_add_op(op)->added);
}

void notice_done_reset(struct op *op)
{
	notice_done_op(op)->stale = false;
}

void notice_done_free(struct op *op)
{
	free(notice_done_op(op)->error);
}

void notice_resume_free(struct op *op)
{
	free(notice_resume_op(op)->under_way);
}
