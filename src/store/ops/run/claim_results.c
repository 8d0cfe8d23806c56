/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the runs that a claim returns, with their definitions and previous attempts. */
#include "base/map.h"
#include "base/text.h"
#include "core/job/run.h"
#include "store/ops/run/claim_private.h"
#include "store/ops/run/claims.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"

struct claimed claimed_read(struct query *q)
{
	struct run *r = row_run(q);
	const char *spec = query_get_text(q);
	uint64_t digest = (uint64_t)query_get_int(q);
	usec_t typical = query_get_int(q);
	bool sound = spec && r->owner && digest == row_digest(r->uid, r->owner, spec);

	return (struct claimed){r, xstrdup(sound ? spec : ""), typical};
}

void claimed_done(struct claimed *c)
{
	run_free(c->run);
	free(c->spec);
	*c = (struct claimed){};
}

static void claimed_add(struct claim_list *l, struct query *q)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = claimed_read(q);
}

/* How the last attempts of runs ended that are tried again. */
bool claim_previous_read(struct store *s, struct claim_list *l, struct err *e)
{
	AUTO_DONE(map) by_run = {};
	AUTO_SET ids = {};
	AUTO_QUERY q = {};

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].run->attempt > 0) {
			map_put(&by_run, l->v[i].run->id, l->v[i].run);
			set_id(&ids, l->v[i].run->id);
		}
	if (ids.n == 0)
		return true;
	q = query_start(s->db, Q_ATTEMPTS_LAST, e);
	set_bind(&q, &ids);
	while (query_row(&q)) {
		struct run *r = map_get(&by_run, query_get_int(&q));
		struct attempt *a = xcalloc(1, sizeof(*a));

		a->outcome = (enum attempt_outcome)query_get_int(&q);
		a->exit_code = query_get_int(&q);
		a->term_signal = query_get_int(&q);
		a->error = query_get_copy(&q);
		a->node_name = query_get_copy(&q);
		attempt_free(r->previous);
		r->previous = a;
	}
	return !q.failed;
}

bool claim_read_runs(struct store *s, const char *ids, struct claim_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_GET_CLAIMED, e);

	query_text(&q, ids);
	while (query_row(&q))
		claimed_add(ret, &q);
	return !q.failed && claim_previous_read(s, ret, e);
}

bool claim_take_over(struct store *s, const char *node, struct set *ids, struct claim_list *ret, struct err *e)
{
	AUTO_QUERY q = {};

	if (ids->n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_TAKE_OVER, e);
	query_text(&q, node);
	set_bind(&q, ids);
	return query_finish(&q) && claim_read_runs(s, set_json(ids), ret, e);
}

void claim_list_done(struct claim_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		claimed_done(&l->v[i]);
	free(l->v);
	*l = (struct claim_list){};
}
