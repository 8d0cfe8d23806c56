/* SPDX-License-Identifier: Apache-2.0 */
/* Route that shows metrics to Prometheus. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/store_outage.h"
#include "daemon/metrics/metrics_scrape.h"

struct metrics_query {
	struct store_read q;
	struct metrics_scrape *scrape; /* owned */
};

static bool run_metrics(struct store *s, struct store_read *q, struct err *e)
{
	return metrics_scrape_write(((struct metrics_query *)q)->scrape, s, &q->out, e);
}

static void answer_metrics(struct request *r, struct store_read *q)
{
	enum metrics_format f = metrics_scrape_format(((struct metrics_query *)q)->scrape);

	request_answer_typed(r, metrics_text_type(f), &q->out);
}

static void free_metrics(struct store_read *q)
{
	metrics_scrape_free(((struct metrics_query *)q)->scrape);
	free((struct metrics_query *)q);
}

/* While the store does not answer, the permission was not checked, and only the series of this node are known. */
static void answer_away(struct request *r, struct metrics_scrape *s)
{
	AUTO_DONE(buf) out = {};
	struct err e = {};

	if (request_role(r) != ROLE_ROOT && request_role(r) != ROLE_ADMIN) {
		err_set(&e, ERR_DENIED, "only administrators may see metrics");
		request_answer_err(r, &e);
	} else if (metrics_scrape_write(s, NULL, &out, &e)) {
		request_answer_typed(r, metrics_text_type(metrics_scrape_format(s)), &out);
	} else {
		request_answer_err(r, &e);
	}
}

void route_metrics(struct request *r)
{
	AUTO(metrics_scrape) *scrape = NULL;
	struct metrics_query *m;
	struct err e = {};

	if (!r->context->metrics_source) {
		err_set(&e, ERR_NOT_FOUND, "this daemon has no metrics");
		request_answer_err(r, &e);
		return;
	}
	scrape = metrics_scrape_new(r->context->metrics_source, metrics_text_negotiate(request_header(r, "Accept")));
	if (store_outage_since(r->context->store_outage, NULL)) {
		answer_away(r, scrape);
		return;
	}
	m = xcalloc(1, sizeof(*m));
	m->scrape = STEAL(scrape);
	m->q.run = run_metrics;
	m->q.then = answer_metrics;
	m->q.free = free_metrics;
	store_read_start(r, &m->q);
}
