/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pauses, limits and their usage, which keep runs waiting. */
#include "store/read/why.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/pause.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/pause_rows.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OFFERED_MAX 200 /* bytes of the list of labels in a message */

struct context_limit {
	char *scope, *key; /* owned */
	int64_t running;
	struct rate rate;
	usec_t bucket;
};

struct context_tally {
	int64_t uid, n;
	char *queue; /* owned */
};

struct context_node {
	char *id, *name, *labels; /* owned */
	bool drained;
};

void why_context_done(struct why_context *w)
{
	for (size_t i = 0; i < w->n_nodes; i++) {
		free(w->nodes[i].id);
		free(w->nodes[i].name);
		free(w->nodes[i].labels);
	}
	free(w->nodes);
	free(w->leader);
	for (size_t i = 0; i < w->n_limits; i++) {
		free(w->limits[i].scope);
		free(w->limits[i].key);
	}
	for (size_t i = 0; i < w->n_tallies; i++)
		free(w->tallies[i].queue);
	free(w->limits);
	free(w->tallies);
	pause_list_done(&w->pauses);
	*w = (struct why_context){};
}

static bool read_limits_now(struct store *s, struct why_context *w, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LIMITS_NOW, e);

	while (query_row(&q)) {
		struct context_limit *l;

		w->limits = xgrow(w->limits, w->n_limits, sizeof(*w->limits));
		l = &w->limits[w->n_limits++];
		l->scope = query_get_copy(&q);
		l->key = query_get_copy(&q);
		l->running = query_get_int(&q);
		query_get_int(&q);
		l->rate.n = query_get_int(&q);
		l->rate.per = query_get_int(&q);
		l->rate.burst = query_get_int(&q);
		l->bucket = query_get_int(&q);
	}
	return !q.failed;
}

static bool read_tallies(struct store *s, struct why_context *w, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_ACTIVE_NOW, e);

	query_int(&q, COUNT_ACTIVE);
	query_text(&q, s->node_name);
	while (query_row(&q)) {
		struct context_tally t = {};

		t.uid = query_get_int(&q);
		t.queue = query_get_copy(&q);
		t.n = query_get_int(&q);
		w->tallies = xgrow(w->tallies, w->n_tallies, sizeof(*w->tallies));
		w->tallies[w->n_tallies++] = t;
	}
	return !q.failed;
}

static bool read_live_nodes(struct store *s, struct why_context *w, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODES_LIVE, e);

	while (query_row(&q)) {
		struct context_node *n;

		w->nodes = xgrow(w->nodes, w->n_nodes, sizeof(*w->nodes));
		n = &w->nodes[w->n_nodes++];
		n->id = query_get_copy(&q);
		n->name = query_get_copy(&q);
		n->drained = query_get_int(&q);
		n->labels = query_get_copy(&q);
	}
	return !q.failed;
}

static bool read_leader_name(struct store *s, struct why_context *w, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LEADER_GET, e);

	if (query_row(&q)) {
		query_get_text(&q);
		w->leader = query_get_copy(&q);
		query_get_int(&q);
		if (query_get_int(&q) <= 0)
			free(STEAL(w->leader));
	}
	return !q.failed;
}

bool why_context_read(struct store *s, struct why_context *ret, struct err *e)
{
	AUTO_DONE(why_context) w = {};
	AUTO_TX tx = {};

	if (!pause_rows_list(s, -1, &w.pauses, e) || !tx_begin(&tx, s, false, e) || !read_limits_now(s, &w, e) ||
	    !read_tallies(s, &w, e) || !read_live_nodes(s, &w, e) || !read_leader_name(s, &w, e) || !tx_commit(&tx, e))
		return false;
	*ret = w;
	w = (struct why_context){};
	return true;
}

static void fill_share(const struct why_context *w, const char *scope, const char *key, usec_t now, struct why_share *ret)
{
	for (size_t i = 0; i < w->n_limits; i++) {
		const struct context_limit *l = &w->limits[i];
		usec_t bucket = l->bucket, again = 0;

		if (strcmp(l->scope, scope) != 0 || strcmp(l->key, key) != 0)
			continue;
		ret->running = l->running;
		if (l->rate.n > 0 && !policy_rate_take(&l->rate, now, &bucket, &again))
			ret->rate_at = again;
	}
}

void why_context_shares(const struct why_context *w, const struct job *j, usec_t now, struct why_share *ret_queue,
	struct why_share *ret_owner)
{
	char uid[24];

	*ret_queue = (struct why_share){.name = j->queue};
	*ret_owner = (struct why_share){.name = j->owner};
	for (size_t i = 0; i < w->n_tallies; i++) {
		if (strcmp(w->tallies[i].queue, j->queue) == 0)
			ret_queue->active += w->tallies[i].n;
		if (w->tallies[i].uid == j->uid)
			ret_owner->active += w->tallies[i].n;
	}
	snprintf(uid, sizeof(uid), "%" PRId64, j->uid);
	fill_share(w, "queue", j->queue, now, ret_queue);
	fill_share(w, "owner", uid, now, ret_owner);
}

/* ---- nodes ---- */

void why_nodes_text_done(struct why_nodes_text *t)
{
	buf_done(&t->wanted);
	buf_done(&t->offered);
}

static bool has_labels(const struct context_node *n, const struct strv *labels)
{
	for (size_t i = 0; labels && i < labels->n; i++) {
		AUTO_TEXT line = xprintf("\n%s\n", labels->v[i]);

		if (!strstr(n->labels, line))
			return false;
	}
	return true;
}

static void offer(const struct context_node *n, struct buf *out)
{
	const char *at = n->labels;

	for (size_t len; *(at += strspn(at, "\n")) && out->len < OFFERED_MAX; at += len) {
		len = strcspn(at, "\n");
		buf_printf(out, "%s%.*s on %s", out->len ? ", " : "", (int)len, at, n->name);
	}
}

void why_context_nodes(const struct why_context *w, const struct strv *labels, const char *node, struct why_nodes_text *ret)
{
	struct why_nodes *f = &ret->facts;

	*ret = (struct why_nodes_text){};
	f->alive = (int64_t)w->n_nodes;
	f->leader = w->leader;
	for (size_t i = 0; i < w->n_nodes; i++) {
		const struct context_node *n = &w->nodes[i];
		bool fits = has_labels(n, labels);

		f->awake += !n->drained;
		f->fit += fits;
		f->fit_awake += fits && !n->drained;
		if (fits && n->drained)
			f->drained = n->name;
		if (text_equal(n->id, node))
			f->elsewhere = !fits || n->drained;
		offer(n, &ret->offered);
	}
	for (size_t i = 0; labels && i < labels->n; i++)
		buf_printf(&ret->wanted, "%s%s", i ? " and " : "", labels->v[i]);
	f->wanted = ret->wanted.len ? ret->wanted.data : NULL;
	f->offered = ret->offered.len ? ret->offered.data : NULL;
}

static bool read_waiting(struct store *s, struct job *const *v, size_t n, const char *ids, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_WAITING, e);
	size_t i = 0;

	query_text(&q, ids);
	while (query_row(&q)) {
		int64_t job = query_get_int(&q);

		/* the rows usually have the order of the jobs, but this is not guaranteed */
		for (size_t k = 0; k < n && v[i]->id != job; k++)
			i = (i + 1) % n;
		if (v[i]->id != job)
			continue;
		v[i]->waiting.id = query_get_int(&q);
		v[i]->waiting.slot = query_get_int(&q);
		v[i]->waiting.due_at = query_get_int(&q);
		v[i]->waiting.hold = (int)query_get_int(&q);
		v[i]->waiting.attempt = query_get_int(&q);
		free(v[i]->waiting.reason);
		v[i]->waiting.reason = query_get_copy(&q);
	}
	return !q.failed;
}

bool why_waiting_read(struct store *s, struct job *const *v, size_t n, struct err *e)
{
	AUTO_SET ids = {};
	AUTO_TX tx = {};

	for (size_t i = 0; i < n; i++)
		if (v[i]->state < JOB_FINISHED)
			set_id(&ids, v[i]->id);
	return ids.n == 0 || (tx_begin(&tx, s, false, e) && read_waiting(s, v, n, set_json(&ids), e) && tx_commit(&tx, e));
}

/* ---- one job ---- */

void why_job_done(struct why_job *w)
{
	run_free(w->holder);
	*w = (struct why_job){};
}

static bool read_holder(struct store *s, const struct job *j, struct why_job *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PERMITS_OF, e);
	AUTO_SET ids = {};
	int64_t run = 0;

	set_id(&ids, j->id);
	set_bind(&q, &ids);
	while (query_row(&q)) {
		query_get_int(&q);
		query_get_int(&q);
		if (ret->taken++ == 0)
			run = query_get_int(&q);
	}
	return !q.failed && (run == 0 || row_run_read(s, -1, run, &ret->holder, e));
}

static bool read_bucket(struct store *s, const struct job *j, struct why_job *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_GATED, e);
	AUTO_SET ids = {};

	set_id(&ids, j->id);
	set_bind(&q, &ids);
	if (query_row(&q)) {
		query_get_int(&q);
		query_get_int(&q);
		query_get_text(&q);
		query_get_text(&q);
		query_get_int(&q);
		ret->bucket = query_get_int(&q);
	}
	return !q.failed;
}

bool why_job_read(struct store *s, const struct job *j, struct why_job *ret, struct err *e)
{
	AUTO_DONE(why_job) w = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !read_holder(s, j, &w, e) ||
	    !read_bucket(s, j, &w, e) || !tx_commit(&tx, e))
		return false;
	*ret = w;
	w = (struct why_job){};
	return true;
}
