/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out in one query whether the names and keys of new jobs are free. */
#include "store/ops/job/job_names.h"
#include "base/text.h"
#include "store/ops/job/job_checks.h"
#include "store/ops/job/jobs.h"
#include "store/set.h"
#include "store/store_private.h"

#define NAMES_MAX 64 /* larger chunks are compared by the insertion */

void job_names_done(struct job_names *n)
{
	query_done(&n->taken);
}

static bool is_named(const struct adding *a)
{
	return a->j->name || a->j->key;
}

static bool jobs_conflict(const struct job_new *x, const struct job_new *y)
{
	return x->uid == y->uid && ((x->name && text_equal(x->name, y->name)) || (x->key && text_equal(x->key, y->key)));
}

static bool conflicts_with_earlier(const struct adding *a, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (jobs_conflict(a[k].j, a[i].j))
			return true;
	return false;
}

bool job_names_send(struct job_names *n, struct store *s, const struct adding *a, size_t count, struct err *e)
{
	AUTO_SET set = {};
	size_t named = 0;

	for (size_t i = 0; i < count; i++)
		named += is_named(&a[i]);
	n->free = s->db->defer ? named == 0 || count <= NAMES_MAX : named == 0 && !s->db->ops->row_locks;
	if (!n->free || named == 0)
		return true;
	for (size_t i = 0; i < count; i++) {
		if (!is_named(&a[i]))
			continue;
		if (conflicts_with_earlier(a, i)) {
			n->free = false;
			return true;
		}
		set_item(&set);
		set_int(&set, "id", (int64_t)i);
		set_int(&set, "uid", a[i].j->uid);
		set_text(&set, "name", a[i].j->name);
		set_text(&set, "key", a[i].j->key);
	}
	n->taken = query_start(s->db, Q_JOBS_TAKEN, e);
	set_bind(&n->taken, &set);
	return query_send(&n->taken);
}

bool job_names_read(struct job_names *n)
{
	if (!n->taken.db)
		return true;
	while (query_row(&n->taken))
		n->free = false;
	return !n->taken.failed;
}
