/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which archived runs a search finds, and how they are shown. */
#include "daemon/archive/archive_query.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/archive/archive_names.h"
#include "wire/json_value.h"
#include <inttypes.h>
#include <string.h>

void archive_query_done(struct archive_query *q)
{
	free(q->job_name);
	free(q->user);
	free(q->cursor);
	*q = (struct archive_query){};
}

void archive_page_done(struct archive_page *p)
{
	buf_done(&p->runs);
	free(p->next);
	*p = (struct archive_page){};
}

void archive_output_place_done(struct archive_output_place *p)
{
	free(p->object);
	buf_done(&p->end);
	*p = (struct archive_output_place){};
}

bool archive_query_sees(const struct archive_query *q, int64_t owner)
{
	if (q->scope == OWNER_NOT_ROOT)
		return owner_uid(owner) != 0;
	return q->scope == OWNER_ALL || q->scope == owner;
}

static bool text_is(const char *wanted, const char *text, size_t len)
{
	return !wanted || (strlen(wanted) == len && strncmp(wanted, text, len) == 0);
}

bool archive_query_matches(const struct archive_query *q, const struct archive_run_name *n)
{
	return archive_query_sees(q, n->owner) && (!q->run || q->run == n->run) && (!q->job || q->job == n->job) &&
	       text_is(q->job_name, n->name, n->name_len) && text_is(q->user, n->user, n->user_len) &&
	       (!q->states || (q->states & (1U << n->state))) && (!q->since || n->slot + USEC_SEC > q->since) &&
	       (!q->until || n->slot < q->until);
}

/* ---- records ---- */

json_t *archive_record_parse(const char *line, size_t len)
{
	json_auto_t *o = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

	return json_incref(json_object_get(o, "run"));
}

static bool member_number(const json_t *o, const char *name, int64_t *ret)
{
	const json_t *v = json_object_get(o, name);

	*ret = json_integer_value(v);
	return json_is_integer(v);
}

bool archive_record_name(const json_t *run, struct archive_run_name *ret, struct buf *room)
{
	const char *state = json_string_value(json_object_get(run, "state")), *slot = json_string_value(json_object_get(run, "slot"));
	struct err e = {};

	*ret = (struct archive_run_name){.owner = -1};
	if (!member_number(run, "id", &ret->run) || !member_number(run, "job", &ret->job) || !state ||
		!run_state_parse(state, &ret->state) || (slot && !rfc3339_parse(slot, &ret->slot, &e)))
		return false;
	if (!member_number(run, "owner_number", &ret->owner)) /* of an earlier version: only administrators see it */
		ret->owner = INT64_MAX;
	archive_name_encode(room, json_string_value(json_object_get(run, "owner")), false);
	ret->user_len = room->len;
	archive_name_encode(room, json_string_value(json_object_get(run, "job_name")), true);
	ret->name_len = room->len - ret->user_len;
	ret->user = room->len ? room->data : "";
	ret->name = ret->user + ret->user_len;
	return true;
}

void archive_page_add(struct archive_page *p, json_t *run, const char *as)
{
	size_t i;
	json_t *attempt;

	json_array_foreach(json_object_get(run, "attempts"), i, attempt) {
		bool kept = json_is_true(json_object_get(attempt, "output_archived")) ||
			    json_is_string(json_object_get(attempt, "output_end"));

		json_object_set_new(attempt, "output_archived", json_boolean(kept));
		json_object_del(attempt, "output_end");
	}
	json_object_del(run, "owner_number");
	json_object_set_new(run, "archived_as", json_value_text(as));
	if (p->n++)
		buf_char(&p->runs, ',');
	json_value_write(run, &p->runs);
}

/* ---- output ---- */

static const json_t *attempt_find(const json_t *run, int64_t number)
{
	const json_t *list = json_object_get(run, "attempts"), *found = NULL, *attempt;
	size_t i;

	json_array_foreach(list, i, attempt)
	{
		int64_t n = 0;

		if (member_number(attempt, "attempt", &n) && (number == 0 || n == number))
			found = attempt;
	}
	return found;
}

bool archive_record_output(const json_t *run, int64_t number, struct archive_output_place *ret, struct err *e)
{
	const json_t *attempt = attempt_find(run, number);
	const char *end = json_string_value(json_object_get(attempt, "output_end"));
	struct archive_run_name name;
	AUTO_DONE(buf) room = {};
	int64_t n = 0, bytes = 0;

	if (!attempt || !member_number(attempt, "attempt", &n) || !archive_record_name(run, &name, &room))
		return err_set(e, ERR_NOT_FOUND, "the archived run has no attempt %" PRId64, number);
	if (json_is_true(json_object_get(attempt, "output_archived"))) {
		ret->object = archive_name_of_output(name.slot, name.run, n);
		return true;
	}
	if (end && buf_base64_decode(end, strlen(end), &ret->end))
		return true;
	if (member_number(attempt, "output_bytes", &bytes) && bytes == 0)
		return true; /* there was none */
	return err_set(e, ERR_NOT_FOUND,
		"the output of attempt %" PRId64 " of run %" PRId64 " was not archived (see output-archive in jobschedd.conf(5))", n,
		name.run);
}
