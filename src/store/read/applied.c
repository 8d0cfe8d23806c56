/* SPDX-License-Identifier: Apache-2.0 */
/* Reads jobs by name and by the set of definitions that they were applied from. */
#include "store/read/applied.h"
#include "base/buf.h"
#include "base/err.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <stdlib.h>

#define NAMES_CHUNK 1000 /* names in one statement */

void applied_list_done(struct applied_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].job.owner);
		free(l->v[i].job.name);
		free(l->v[i].job.spec);
		free(l->v[i].set);
	}
	free(l->v);
	*l = (struct applied_list){};
}

static struct applied_job *applied_new(struct applied_list *l)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n] = (struct applied_job){};
	return &l->v[l->n++];
}

static bool read_chunk(struct store *s, int64_t uid, const char *names, struct applied_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_NAMED, e);

	query_text(&q, names);
	query_int(&q, uid);
	while (query_row(&q)) {
		struct applied_job *a = applied_new(ret);

		a->job.id = query_get_int(&q);
		a->job.uid = query_get_int(&q);
		a->job.owner = query_get_copy(&q);
		a->job.name = query_get_copy(&q);
		a->job.state = (enum job_state)query_get_int(&q);
		a->job.revision = query_get_int(&q);
		a->job.created_at = query_get_int(&q);
		a->job.updated_at = query_get_int(&q);
		a->asked = query_get_int(&q);
		a->set = query_get_copy(&q);
		a->job.spec = query_get_copy(&q);
	}
	return !q.failed;
}

bool applied_by_name(struct store *s, int64_t uid, const struct strv *names, struct applied_list *ret, struct err *e)
{
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e))
		return false;
	for (size_t from = 0; from < names->n; from += NAMES_CHUNK) {
		AUTO_DONE(buf) list = {};

		for (size_t i = from; i < names->n && i - from < NAMES_CHUNK; i++) {
			buf_char(&list, i == from ? '[' : ',');
			buf_json_str(&list, names->v[i]);
		}
		buf_char(&list, ']');
		if (!read_chunk(s, uid, list.data, ret, e))
			return false;
	}
	return tx_commit(&tx, e);
}

static bool read_members(struct store *s, int64_t uid, const char *set, struct applied_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_APPLIED_MEMBERS, e);

	query_int(&q, uid);
	query_text(&q, set);
	while (query_row(&q)) {
		struct applied_job *a = applied_new(ret);

		a->job.id = query_get_int(&q);
		a->job.name = query_get_copy(&q);
	}
	return !q.failed;
}

bool applied_members(struct store *s, int64_t uid, const char *set, struct applied_list *ret, struct err *e)
{
	AUTO_TX tx = {};

	return tx_begin(&tx, s, false, e) && read_members(s, uid, set, ret, e) && tx_commit(&tx, e);
}
