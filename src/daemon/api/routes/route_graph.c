/* SPDX-License-Identifier: Apache-2.0 */
/* Route that shows the chain of a job: what it runs after and what runs after it. */
#include "base/auto.h"
#include "base/text.h"
#include "core/job/job.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/store_read.h"
#include "store/read/chain_graph.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <string.h>

struct graph_query {
	struct store_read q;
	char *ref; /* owned */
};

static void free_graph_query(struct store_read *q)
{
	free(((struct graph_query *)q)->ref);
	free(q);
}

/* A link without a condition waits for success. */
static json_t *link_to_json(const struct chain_graph_link *l)
{
	const char *when = l->link ? strchr(l->link, ':') : NULL;

	return json_pack("{s:o, s:I, s:o, s:s}", "parent", l->parent ? json_integer(l->parent) : json_null(), "child",
		(json_int_t)l->child, "after", json_value_text(l->link), "when", when ? when + 1 : "success");
}

static bool run_graph(struct store *s, struct store_read *q, struct err *e)
{
	struct graph_query *gq = (struct graph_query *)q;
	AUTO_DONE(chain_graph) g = {};
	AUTO(job) *j = NULL;
	json_auto_t *o = NULL;
	json_t *jobs = json_array(), *links = json_array();

	o = json_pack("{s:o, s:o}", "jobs", jobs, "links", links);
	if (!store_read_job(s, q->scope, gq->ref, &j, e) || !chain_graph_read(s, j->id, &g, e))
		return false;
	for (size_t i = 0; i < g.jobs.n; i++)
		json_array_append_new(jobs, row_json_job_brief(g.jobs.v[i]));
	for (size_t i = 0; i < g.n; i++)
		json_array_append_new(links, link_to_json(&g.v[i]));
	json_object_set_new(o, "job", json_integer(j->id));
	json_object_set_new(o, "more", json_boolean(g.more));
	json_value_write(o, &q->out);
	buf_char(&q->out, '\n');
	return true;
}

void route_job_graph(struct request *r)
{
	struct graph_query *gq = xcalloc(1, sizeof(*gq));

	gq->ref = xstrdup(r->params[0]);
	gq->q.run = run_graph;
	gq->q.free = free_graph_query;
	store_read_start(r, &gq->q);
}
