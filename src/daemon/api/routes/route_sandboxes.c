/* SPDX-License-Identifier: Apache-2.0 */
/* Route that lists the sandbox profiles of the spawner. */
#include "base/auto.h"
#include "base/err.h"
#include "core/start/sandbox_offer.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/loop/spawner_link.h"
#include "wire/json_value.h"

static json_t *offer_to_json(const struct sandbox_offer *o)
{
	json_t *applies = json_array();

	for (size_t i = 0; i < o->applies.n; i++)
		json_array_append_new(applies, json_value_text(o->applies.v[i]));
	return json_pack("{s:o, s:b, s:o, s:o}", "name", json_value_text(o->name), "available",
		o->available, "applies", applies, "missing",
		o->missing ? json_value_text(o->missing) : json_null());
}

void route_sandbox_list(struct request *r)
{
	AUTO(sandbox_offers) *offers = spawner_link_sandboxes(r->context->spawner);
	struct err e = {};
	json_t *list;

	if (!offers) {
		err_set(&e, ERR_BUSY,
			"the spawner has not reported its sandbox profiles yet; try again in a "
			"moment");
		request_answer_err(r, &e);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < offers->n; i++)
		json_array_append_new(list, offer_to_json(&offers->v[i]));
	request_answer_json(r, 200, json_pack("{s:o}", "sandboxes", list));
}
