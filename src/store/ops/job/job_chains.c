/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and checks the links of jobs to the jobs that they run after. */
#include "store/ops/job/job_chains.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/chain.h"
#include "store/ops/job/job_checks.h"
#include "store/ops/job/jobs.h"
#include "store/set.h"
#include "store/store_private.h"
#include <string.h>

void job_chains_describe(struct set *set, const struct job_new *j)
{
	for (size_t i = 0; j->after && i < j->after->n; i++) {
		struct chain_link l;

		if (!chain_link_parse(j->after->v[i], &l, NULL))
			continue;
		set_item(set);
		set_int(set, "job", j->id);
		set_int(set, "uid", j->uid);
		set_text(set, "name", l.parent);
		set_text(set, "value", j->after->v[i]);
		set_int(set, "n", j->after_mode);
	}
}

bool job_chains_rewrite(struct store *s, const struct job_new *j, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_CHAINS_DROP, e);
	AUTO_SET set = {};

	query_int(&q, j->id);
	if (!query_finish(&q))
		return false;
	job_chains_describe(&set, j);
	return set_execute(s, Q_CHAINS_INSERT, &set, e);
}

/* The new jobs of one submission, sorted by owner and name. Their links are not stored yet. */
struct batch {
	struct adding **v; /* owned array */
	size_t n;
};

static void batch_done(struct batch *b)
{
	free(b->v);
}

static int by_name(const void *x, const void *y)
{
	const struct job_new *a = (*(struct adding *const *)x)->j, *b = (*(struct adding *const *)y)->j;

	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

/* The place of a job with this name in the batch; b->n: none. */
static size_t batch_find(const struct batch *b, int64_t uid, const char *name)
{
	struct job_new wanted = {.uid = uid, .name = name};
	struct adding key = {.j = &wanted}, *at = &key, **found = b->n ? bsearch(&at, b->v, b->n, sizeof(at), by_name) : NULL;

	return found ? (size_t)(found - b->v) : b->n;
}

static bool refuse_cycle(struct err *why, const char *ref)
{
	err_field(why, "after", "the job would run after itself: it is among the jobs that '%.128s' runs after", ref);
	why->kind = ERR_CONFLICT;
	return true;
}

/* Checks the links to stored jobs, and the links of those upwards. */
static bool stored_check(struct store *s, const struct job_new *j, int64_t id, const struct batch *b, struct err *why, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET refs = {};

	for (size_t i = 0; i < j->after->n; i++) {
		struct chain_link l;

		if (!chain_link_parse(j->after->v[i], &l, why))
			return true;
		if (j->name && strcmp(l.parent, j->name) == 0)
			return refuse_cycle(why, l.parent);
		if (batch_find(b, j->uid, l.parent) < b->n)
			continue;
		set_item(&refs);
		set_text(&refs, "name", l.parent);
	}
	if (refs.n == 0)
		return true;
	q = query_start(s->db, Q_CHAIN_ANCESTORS, e);
	query_int(&q, j->uid);
	set_bind(&q, &refs);
	while (query_row(&q)) {
		const char *ref = query_get_text(&q);
		int64_t job = query_get_int(&q);

		if ((j->name && text_equal(ref, j->name)) || (id && job == id))
			return refuse_cycle(why, ref);
		if (!job && query_get_int(&q)) {
			err_field(why, "after", "no job '%.128s' to run after; 'jobctl list' shows your jobs", ref);
			why->kind = ERR_NOT_FOUND;
			return true;
		}
	}
	return !q.failed;
}

bool job_chains_check(struct store *s, const struct job_new *j, int64_t id, struct err *why, struct err *e)
{
	return why->kind || !j->after || j->after->n == 0 || stored_check(s, j, id, &(struct batch){}, why, e);
}

struct edge {
	size_t parent, child;
};

static int by_parent(const void *x, const void *y)
{
	const struct edge *a = x, *b = y;

	return (a->parent > b->parent) - (a->parent < b->parent);
}

/*
 * Orders the batch so that parents precede children. The jobs that are left over form cycles, or
 * follow one.
 */
static void batch_cycles_refuse(const struct batch *b, struct edge *edges, size_t n)
{
	size_t *waits = xcalloc(b->n + 1, sizeof(*waits)), *ready = xcalloc(b->n + 1, sizeof(*ready)), from = 0, to = 0;

	if (n > 0)
		qsort(edges, n, sizeof(*edges), by_parent);
	for (size_t i = 0; i < n; i++)
		waits[edges[i].child]++;
	for (size_t i = 0; i < b->n; i++)
		if (!waits[i])
			ready[to++] = i;
	for (; from < to; from++) {
		const struct edge wanted = {.parent = ready[from]};
		const struct edge *at = n ? bsearch(&wanted, edges, n, sizeof(*edges), by_parent) : NULL;

		while (at && at > edges && at[-1].parent == wanted.parent)
			at--;
		for (; at && at < edges + n && at->parent == wanted.parent; at++)
			if (--waits[at->child] == 0)
				ready[to++] = at->child;
	}
	for (size_t i = 0; i < b->n; i++)
		if (waits[i] && !b->v[i]->err.kind)
			refuse_cycle(&b->v[i]->err, b->v[i]->j->name);
	free(waits);
	free(ready);
}

bool job_chains_check_all(struct store *s, struct adding *a, size_t n, struct err *e)
{
	__attribute__((cleanup(batch_done))) struct batch b = {};
	struct edge *edges = NULL;
	size_t linked = 0, count = 0;

	for (size_t i = 0; i < n; i++)
		linked += a[i].j->after && a[i].j->after->n > 0;
	if (linked == 0)
		return true;
	b.v = xcalloc(n, sizeof(struct adding *));
	for (size_t i = 0; i < n; i++)
		b.v[b.n++] = &a[i];
	qsort(b.v, b.n, sizeof(struct adding *), by_name);
	for (size_t i = 0; i < b.n; i++) {
		const struct job_new *j = b.v[i]->j;

		for (size_t k = 0; j->after && k < j->after->n; k++) {
			struct chain_link l;
			size_t parent = chain_link_parse(j->after->v[k], &l, NULL) ? batch_find(&b, j->uid, l.parent) : b.n;

			if (parent == b.n)
				continue;
			edges = xgrow(edges, count, sizeof(*edges));
			edges[count++] = (struct edge){parent, i};
		}
	}
	batch_cycles_refuse(&b, edges, count);
	free(edges);
	for (size_t i = 0; i < n; i++)
		if (!a[i].err.kind && a[i].j->after && a[i].j->after->n > 0 && !stored_check(s, a[i].j, 0, &b, &a[i].err, e))
			return false;
	return true;
}
