/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for probes: alive, ready. */
#include "base/err.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/store_outage.h"

static void answer_probe(struct request *r, int status, const char *text)
{
	request_answer_json(r, status, json_pack("{s:s}", "status", text));
}

void route_health(struct request *r)
{
	answer_probe(r, 200, "ok");
}

/* The reason is a fixed word: an anonymous client learns no address and no name. */
void route_ready(struct request *r)
{
	if (store_outage_since(r->context->store_outage, NULL))
		answer_probe(r, 503, "store unavailable");
	else if (r->context->cluster && cluster_is_draining(r->context->cluster))
		answer_probe(r, 503, "drained");
	else
		answer_probe(r, 200, "ok");
}
