/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the reads of several operations of a batch together. */
#include "store/ops/prefetch.h"
#include "store/ops/op_private.h"
#include "store/store_private.h"

/* Whether it reads and writes one job only; others may write what was read for the operations behind them. */
static bool is_of_one_job(const struct op *op)
{
	const struct op_info *info = op_info(op);

	return info->prefetch && (!info->writers_of || info->writers_of(op) == WRITERS_SHARED);
}

bool prefetch_send(struct store *s, struct op *const *ops, size_t n, size_t *ret, struct err *e)
{
	*ret = 0;
	prefetch_drop(s);
	if (!s->db->defer || !s->db->ops->prefetch)
		return true;
	while (*ret < n && is_of_one_job(ops[*ret])) {
		const struct op *op = ops[(*ret)++];

		s->prefetch.on = true;
		if (op->ok && !op_info(op)->prefetch(s, op, e))
			return false;
	}
	return true;
}

void prefetch_drop(struct store *s)
{
	if (!s->prefetch.on)
		return;
	s->prefetch.on = false;
	map_done(&s->prefetch.jobs);
	s->prefetch.jobs = (struct map){};
	s->prefetch.runs = 0;
	s->db->ops->prefetch_drop(s->db);
}

void prefetch_free(struct store *s)
{
	map_done(&s->prefetch.jobs);
}

bool prefetch_job(struct store *s, int64_t job)
{
	if (!s->prefetch.on)
		return false;
	if (map_get(&s->prefetch.jobs, job)) {
		prefetch_drop(s);
		return true;
	}
	map_put(&s->prefetch.jobs, job, s);
	return false;
}

bool prefetch_is_late(struct store *s)
{
	if (s->prefetch.jobs.used < 2)
		return false;
	prefetch_drop(s);
	return true;
}
