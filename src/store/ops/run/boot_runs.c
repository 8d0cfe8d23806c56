/* SPDX-License-Identifier: Apache-2.0 */
/* Adds one run of each boot job per boot of a node. */
#include "store/ops/run/boot_runs.h"
#include "base/text.h"
#include "core/job/run.h"
#include "store/ops/op_private.h"
#include "store/ops/run/runs.h"
#include "store/row_ids.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"

/* Records the boot. *ret false: it was known. */
static bool note_boot(struct store *s, const struct op_boot *o, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_BOOT_INSERT, e);

	query_text(&q, o->name);
	query_text(&q, o->boot);
	query_int(&q, o->now);
	*ret = query_row(&q);
	return !q.failed;
}

struct boot_jobs {
	struct run_new *v;
	char **queues; /* owned; the runs borrow them */
	size_t n;
};

static void boot_jobs_done(struct boot_jobs *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->queues[i]);
	free(b->queues);
	free(b->v);
}

static void boot_jobs_add(struct boot_jobs *b, const struct run_new *r, char *queue /* moved */)
{
	b->v = xgrow(b->v, b->n, sizeof(*b->v));
	b->queues = xgrow(b->queues, b->n, sizeof(*b->queues));
	b->v[b->n] = *r;
	b->v[b->n].queue = b->queues[b->n] = queue;
	b->n++;
}

static bool boot_jobs_read(struct store *s, const struct op_boot *o, struct boot_jobs *b, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_BOOT_JOBS, e);

	while (query_row(&q)) {
		struct run_new r = {.kind = RUN_KIND_BOOT, .state = RUN_QUEUED, .slot = o->now, .due_at = o->now,
			.now = o->now};

		AUTO_TEXT queue = NULL;
		AUTO_TEXT spec = NULL;

		r.job = query_get_int(&q);
		r.uid = query_get_int(&q);
		r.revision = query_get_int(&q);
		r.priority = query_get_int(&q);
		queue = query_get_copy(&q);
		spec = query_get_copy(&q);
		if (!o->fn || o->fn(r.job, spec, o->now, &r.due_at, &r.policy, o->fn_arg))
			boot_jobs_add(b, &r, STEAL(queue));
	}
	return !q.failed;
}

static bool boot_runs_add(struct store *s, struct op_boot *o, struct err *e)
{
	AUTO_DONE(boot_jobs) jobs = {};
	AUTO_SET runs = {};
	int64_t *ids;
	bool fresh, ok;

	if (!note_boot(s, o, &fresh, e))
		return false;
	if (!fresh)
		return true;
	if (!boot_jobs_read(s, o, &jobs, e))
		return false;
	ids = xcalloc(jobs.n ? jobs.n : 1, sizeof(*ids));
	ok = row_ids_take(s, Q_RUN_IDS, jobs.n, ids, e);
	for (size_t i = 0; ok && i < jobs.n; i++) {
		jobs.v[i].id = ids[i];
		runs_describe(&runs, &jobs.v[i]);
	}
	free(ids);
	return ok && runs_insert(s, &runs, &o->runs, e);
}

bool boot_runs_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!boot_runs_add(s, boot_runs_op(ops[i]), e))
			return false;
	return true;
}

void boot_runs_reset(struct op *op)
{
	boot_runs_op(op)->runs = 0;
}
