/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pauses as JSON. */
#include "base/auto.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/pause.h"
#include "wire/spec_json.h"

json_t *row_json_pause(const struct pause_order *p)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}",
		"scope", pause_scope_name(p->scope),
		"key", json_value_text(p->key && *p->key ? p->key : NULL),
		"uid", p->uid < 0 ? json_null() : json_integer(owner_uid(p->uid)),
		"by", json_value_text(p->by_name),
		"by_uid", p->by_uid < 0 ? json_null() : json_integer(p->by_uid),
		"reason", json_value_text(p->reason),
		"at", json_value_time(p->at),
		"until", json_value_time(p->until),
		"spared", json_value_text(p->spared && *p->spared ? p->spared : NULL),
		"later", p->later);
}

json_t *row_json_job_pause(const struct job *j)
{
	const struct pause_order p = {.scope = PAUSE_JOB, .uid = j->uid, .by_uid = j->pause.by_uid, .by_name = j->pause.by_name,
		.reason = j->reason, .at = j->pause.at, .until = j->pause.until};

	return j->state == JOB_PAUSED ? row_json_pause(&p) : json_null();
}

json_t *row_json_job_next_pause(const struct job *j)
{
	const struct pause_order p = {.scope = PAUSE_JOB, .uid = j->uid, .by_uid = j->pause.by_uid, .by_name = j->pause.by_name,
		.reason = j->pause.reason, .at = j->pause.at, .later = true};

	return j->state == JOB_ACTIVE && j->pause.later ? row_json_pause(&p) : json_null();
}
