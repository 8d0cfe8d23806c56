/* SPDX-License-Identifier: Apache-2.0 */
/* Reads earlier definitions of a job. */
#include "base/text.h"
#include "store/read/list/page.h"
#include "store/read/revisions.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <string.h>

void revision_list_done(struct revision_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].who);
		free(l->v[i].what);
		free(l->v[i].spec);
	}
	free(l->v);
	*l = (struct revision_list){};
}

static struct revision *list_grow(struct revision_list *l)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n] = (struct revision){};
	return &l->v[l->n++];
}

static bool read_revision_rows(struct store *s, int64_t job, int64_t before, size_t limit, struct revision_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_REVISIONS_OF, e);

	query_int(&q, job);
	query_int(&q, before ? before : INT64_MAX);
	query_int(&q, (int64_t)limit);
	while (query_row(&q)) {
		struct revision *r = list_grow(ret);

		r->number = query_get_int(&q);
		r->uid = query_get_int(&q);
		r->who = query_get_copy(&q);
		r->at = query_get_int(&q);
		r->what = query_get_copy(&q);
		r->origin = query_get_int(&q);
		r->spec = query_get_copy(&q);
	}
	return !q.failed;
}

static bool read_revisions(struct store *s, int64_t job, int64_t before, size_t limit, struct revision_list *ret,
	struct err *e)
{
	size_t bytes = 0, n = 0;

	while (ret->n < limit && (n = page_chunk(ret->n, bytes, limit, PAGE_BYTES)) > 0) {
		size_t from = ret->n;

		if (!read_revision_rows(s, job, from ? ret->v[from - 1].number : before, n, ret, e))
			return false;
		for (size_t i = from; i < ret->n; i++)
			bytes += strlen(ret->v[i].spec);
		if (ret->n < from + n)
			return true;
	}
	ret->more = ret->n < limit;
	return true;
}

/* A job that was never changed has no row: its first revision is its current definition. */
static void add_first(const struct job *j, struct revision_list *ret)
{
	*list_grow(ret) = (struct revision){.number = j->revision, .uid = j->uid, .who = xstrdup(j->owner),
		.at = j->created_at, .what = xstrdup("added"), .spec = xstrdup(j->spec)};
}

bool revisions_page(struct store *s, const struct job *j, int64_t before, size_t limit, struct revision_list *ret,
	struct err *e)
{
	AUTO_DONE(revision_list) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !read_revisions(s, j->id, before, limit, &found, e) || !tx_commit(&tx, e))
		return false;
	if (found.n == 0 && j->revision == 1 && (!before || before > 1) && limit > 0)
		add_first(j, &found);
	*ret = found;
	found = (struct revision_list){};
	return true;
}
