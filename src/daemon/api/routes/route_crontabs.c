/* SPDX-License-Identifier: Apache-2.0 */
/* Route that shows the crontabs of the machine and whether their jobs run. */
#include "base/text.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/crontab/crontabs.h"
#include "daemon/loop/config.h"
#include "wire/json_value.h"
#include <string.h>

static json_t *table_to_json(const struct table_state *t)
{
	return json_pack("{s:o, s:o, s:I, s:o, s:o}", "path", json_value_text(t->path), "user", json_value_text(t->user), "jobs",
		(json_int_t)t->jobs, "problem", json_value_text(t->problem), "note", json_value_text(t->note));
}

void route_crontabs(struct request *r)
{
	struct crontabs_status s = {};
	json_t *tables = json_array();

	if (r->context->crontabs)
		crontabs_status(r->context->crontabs, &s);
	for (size_t i = 0; s.tables && i < s.tables->n; i++)
		json_array_append_new(tables, table_to_json(&s.tables->v[i]));
	request_answer_json(r, 200, json_pack("{s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "mode", config_crontabs_names[s.mode],
		"configured", config_crontabs_names[s.configured], "held", s.held, "read", s.read, "cron", json_value_text(s.cron), "anacron", json_value_text(s.anacron),
		"parser", json_value_text(s.parser), "problem", json_value_text(s.problem), "tables", tables));
}
