/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the jobs above and below a job in its chain, one level per statement. */
#include "store/read/chain_graph.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/job.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"

#define LINKS_MAX 1000 /* of one level */

struct walk {
	struct chain_graph *g;
	struct map seen;       /* job → itself */
	struct set ids;        /* of all jobs */
	size_t jobs;
	int64_t next[CHAIN_GRAPH_JOBS_MAX]; /* jobs of the next level */
	size_t next_n;
};

void chain_graph_done(struct chain_graph *g)
{
	job_list_done(&g->jobs);
	for (size_t i = 0; i < g->n; i++)
		free(g->v[i].link);
	free(g->v);
	*g = (struct chain_graph){};
}

/* False: the job is left out. */
static bool walk_job(struct walk *w, int64_t job)
{
	if (map_get(&w->seen, job))
		return true;
	if (w->jobs == CHAIN_GRAPH_JOBS_MAX) {
		w->g->more = true;
		return false;
	}
	map_put(&w->seen, job, w);
	set_id(&w->ids, job);
	w->jobs++;
	w->next[w->next_n++] = job;
	return true;
}

static void walk_link(struct walk *w, int64_t parent, int64_t child, bool up, char *link /* moved */)
{
	struct chain_graph *g = w->g;
	int64_t other = up ? parent : child;

	if (other && !walk_job(w, other)) {
		free(link);
		return;
	}
	g->v = xgrow(g->v, g->n, sizeof(*g->v));
	g->v[g->n++] = (struct chain_graph_link){parent, child, link};
}

static bool walk_level(struct store *s, struct walk *w, bool up, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, up ? Q_CHAIN_LINKS_UP : Q_CHAIN_LINKS_DOWN, e);
	AUTO_SET level = {};
	size_t n = 0;

	for (size_t i = 0; i < w->next_n; i++)
		set_id(&level, w->next[i]);
	w->next_n = 0;
	set_bind(&q, &level);
	query_int(&q, LINKS_MAX + 1);
	while (query_row(&q)) {
		int64_t parent = query_get_int(&q), child = query_get_int(&q);

		if (n++ == LINKS_MAX) {
			w->g->more = true;
			break;
		}
		walk_link(w, parent, child, up, query_get_copy(&q));
	}
	return !q.failed;
}

/* 'next' has the job alone. */
static bool walk_all(struct store *s, struct walk *w, int64_t job, bool up, struct err *e)
{
	w->next[0] = job;
	w->next_n = 1;
	while (w->next_n > 0)
		if (!walk_level(s, w, up, e))
			return false;
	return true;
}

bool chain_graph_read(struct store *s, int64_t job, struct chain_graph *ret, struct err *e)
{
	AUTO_DONE(chain_graph) g = {};
	struct walk w = {.g = &g};
	AUTO_TX tx = {};
	bool ok;

	walk_job(&w, job);
	ok = tx_begin(&tx, s, false, e) && walk_all(s, &w, job, true, e) && walk_all(s, &w, job, false, e) &&
	     jobs_read(s, -1, set_json(&w.ids), &g.jobs, e) && tx_commit(&tx, e);
	map_done(&w.seen);
	set_done(&w.ids);
	if (!ok)
		return false;
	*ret = g;
	g = (struct chain_graph){};
	return true;
}
