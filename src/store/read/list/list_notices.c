/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages of notices by filter, newest first. */
#include "store/read/list/list_notices.h"
#include "base/text.h"
#include "core/job/notice.h"
#include "store/notice_row.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"

#define EXAMINE_MAX 1000              /* rows read for one page */

void notice_free(struct notice *n)
{
	if (!n)
		return;
	free(n->job_name);
	free(n->owner);
	free(n->channel);
	free(n->detail);
	free(n->error);
	free(n);
}

void notice_list_done(struct notice_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		notice_free(l->v[i]);
	free(l->v);
	*l = (struct notice_list){};
}

static struct notice *row_notice(struct query *q)
{
	struct notice *n = xcalloc(1, sizeof(*n));
	const char *what;

	n->id = query_get_int(q);
	n->job = query_get_int(q);
	n->job_name = query_get_copy(q);
	n->run = query_get_int(q);
	n->uid = query_get_int(q);
	n->owner = query_get_copy(q);
	what = query_get_text(q);
	if (!what || !notice_kind_parse(what, &n->kind))
		n->kind = NOTICE_KIND_NONE;
	n->channel = query_get_copy(q);
	n->state = (enum notice_state)query_get_int(q);
	n->tries = query_get_int(q);
	n->created_at = query_get_int(q);
	n->due_at = query_get_int(q);
	n->done_at = query_get_int(q);
	n->detail = query_get_copy(q);
	n->error = query_get_copy(q);
	return n;
}

static void notice_list_add(struct notice_list *l, struct notice *n)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = n;
}

bool list_notices_get(struct store *s, struct set *ids, struct notice_list *ret, struct err *e)
{
	AUTO_QUERY q = {};

	if (ids->n == 0)
		return true;
	q = query_start(s->db, Q_NOTICES_GET, e);
	set_bind(&q, ids);
	while (query_row(&q))
		notice_list_add(ret, row_notice(&q));
	return !q.failed;
}

static bool notice_matches(const struct notice_filter *f, const struct notice *n)
{
	return (f->uid < 0 || n->uid == f->uid) && (!f->job || n->job == f->job) &&
	       (!f->states || f->states & 1u << n->state);
}

/* Selects the index that leaves the fewest rows to filter. */
static struct query start_page(struct store *s, const struct notice_filter *f, size_t *ret_max, struct err *e)
{
	bool failed = f->states == 1u << NOTICE_FAILED;
	struct query q;

	if (f->job) {
		q = query_start(s->db, Q_NOTICE_PAGE_JOB, e);
		query_int(&q, f->job);
	} else if (failed) {
		q = query_start(s->db, Q_NOTICE_PAGE_FAILED, e);
	} else if (f->uid >= 0) {
		q = query_start(s->db, Q_NOTICE_PAGE_UID, e);
		query_int(&q, f->uid);
	} else {
		q = query_start(s->db, Q_NOTICE_PAGE, e);
	}
	query_int(&q, f->before ? f->before : INT64_MAX);
	*ret_max = (f->states && (f->job || !failed)) || (failed && f->uid >= 0) ? EXAMINE_MAX : f->limit + 1;
	query_int(&q, (int64_t)*ret_max);
	return q;
}

static bool notice_page_read(struct store *s, const struct notice_filter *f, struct notice_list *ret, struct err *e)
{
	size_t examined = 0, max = 0;
	AUTO_QUERY q = start_page(s, f, &max, e);
	int64_t last = 0;

	while (query_row(&q)) {
		AUTO(notice) *n = row_notice(&q);

		if (!notice_matches(f, n)) {
			/* does not match */
		} else if (ret->n == f->limit) {
			ret->next = last;
			return true;
		} else {
			notice_list_add(ret, STEAL(n));
		}
		last = n ? n->id : ret->v[ret->n - 1]->id;
		examined++;
	}
	ret->next = examined == max ? last : 0;
	return !q.failed;
}

bool list_notices_page(struct store *s, const struct notice_filter *f, struct notice_list *ret, struct err *e)
{
	AUTO_DONE(notice_list) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !notice_page_read(s, f, &found, e) || !tx_commit(&tx, e))
		return false;
	*ret = found;
	found = (struct notice_list){};
	return true;
}
