/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the pauses of scopes. */
#include "store/pause_rows.h"
#include "core/job/pause.h"
#include "store/store_private.h"
#include "store/tx.h"

static bool pause_rows_take(struct query *q, struct pause_list *ret)
{
	while (query_row(q)) {
		enum pause_scope scope;
		struct pause_order *p;

		if (!pause_scope_parse(query_get_text(q), &scope))
			continue; /* a scope of a newer version */
		p = pause_list_add(ret);
		p->scope = scope;
		p->key = query_get_copy(q);
		p->uid = query_get_int(q);
		p->by_uid = query_get_int(q);
		p->by_name = query_get_copy(q);
		p->reason = query_get_copy(q);
		p->at = query_get_int(q);
		p->until = query_get_int(q);
		p->spared = query_get_copy(q);
		p->later = query_get_int(q);
	}
	return !q->failed;
}

bool pause_rows_read(struct store *s, int64_t uid, struct pause_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSES_GET, e);

	query_int(&q, uid);
	return pause_rows_take(&q, ret);
}

static struct query pauses_of_job(struct store *s, int64_t job, struct err *e)
{
	struct query q = query_start(s->db, Q_PAUSES_OF_JOB, e);

	query_int(&q, job);
	return q;
}

bool pause_rows_prefetch(struct store *s, int64_t job, struct err *e)
{
	AUTO_QUERY q = pauses_of_job(s, job, e);

	return query_prefetch(&q);
}

bool pause_rows_of_job(struct store *s, int64_t uid, int64_t job, struct pause_list *ret, struct err *e)
{
	AUTO_QUERY q = {};

	if (!s->db->defer)
		return pause_rows_read(s, uid, ret, e);
	q = pauses_of_job(s, job, e);
	return pause_rows_take(&q, ret);
}

bool pause_rows_list(struct store *s, int64_t uid, struct pause_list *ret, struct err *e)
{
	AUTO_DONE(pause_list) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !pause_rows_read(s, uid, &found, e) || !tx_commit(&tx, e))
		return false;
	*ret = found;
	found = (struct pause_list){};
	return true;
}

bool pause_row_write(struct store *s, const struct pause_order *p, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSE_PUT, e);

	query_text(&q, pause_scope_name(p->scope));
	query_text(&q, p->key ? p->key : "");
	query_int(&q, p->uid);
	query_int(&q, p->by_uid);
	query_text(&q, p->by_name);
	query_text(&q, p->reason);
	query_int(&q, p->at);
	query_int(&q, p->until);
	query_text(&q, p->spared ? p->spared : "");
	query_int(&q, p->later);
	return query_finish(&q);
}
