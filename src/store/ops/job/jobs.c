/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts jobs, singly in groups or in bulk. */
#include "store/ops/job/jobs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "core/time/slots.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/job/job_chains.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/job_checks.h"
#include "store/ops/job/job_names.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/ops/run/runs.h"
#include "store/ops/run/slot_density.h"
#include "store/row_ids.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include <string.h>

#define CHUNK_JOBS 1000
#define CHUNK_ALONE 250       /* on SQLite, where nothing else is written meanwhile: a bulk may give way between chunks */
#define CHUNK_BYTES (4 << 20) /* of specs in one statement */

int64_t job_content_digest(int64_t uid, const char *content)
{
	return content ? (int64_t)row_digest(uid, NULL, content) : 0;
}

int64_t job_key_digest(const struct job_new *j)
{
	return job_content_digest(j->uid, j->content ? j->content : j->spec);
}

const char *job_queue(const struct job_new *j)
{
	return j->queue ? j->queue : QUEUE_DEFAULT;
}

static void job_row_describe(struct set *set, const struct job_new *j)
{
	set_item(set);
	set_int(set, "id", j->id);
	set_int(set, "uid", j->uid);
	set_text(set, "owner", j->owner);
	set_text(set, "name", j->name);
	set_text(set, "key", j->key);
	if (j->key)
		set_int(set, "content", job_key_digest(j));
	set_int(set, "asked", job_content_digest(j->uid, j->asked));
	set_int(set, "segment", job_segment((uint64_t)j->id));
	set_text(set, "queue", job_queue(j));
	set_int(set, "priority", j->priority);
	set_int(set, "boots", j->boots);
	set_int(set, "state", j->paused ? JOB_PAUSED : JOB_ACTIVE);
	set_int(set, "now", j->now);
	set_int(set, "digest", (int64_t)row_digest(j->uid, j->owner, j->spec));
	set_text(set, "spec", j->spec);
}

/*
 * Inserts the jobs that are neither refused nor known; sets 'inserted' of those without a conflict.
 */
static bool insert_rows(struct store *s, struct adding *a, size_t n, struct err *e)
{
	AUTO_DONE(map) by_id = {};
	AUTO_SET set = {};
	AUTO_QUERY q = query_start(s->db, Q_JOBS_INSERT, e);

	for (size_t i = 0; i < n; i++)
		if (!a[i].err.kind && !a[i].inserted && !a[i].j->existed) {
			job_row_describe(&set, a[i].j);
			map_put(&by_id, a[i].j->id, &a[i]);
		}
	set_bind(&q, &set);
	while (set.n && query_row(&q)) {
		struct adding *in = map_get(&by_id, query_get_int(&q));

		if (in)
			in->inserted = true;
	}
	return !q.failed;
}

/* Inserts jobs whose names and keys are free: on a server without waiting for a reply, on SQLite without a table of the ids. */
static bool insert_new_rows(struct store *s, struct adding *a, size_t n, struct err *e)
{
	AUTO_SET set = {};

	for (size_t i = 0; i < n; i++)
		if (!a[i].err.kind && !a[i].j->existed) {
			job_row_describe(&set, a[i].j);
			a[i].inserted = true;
		}
	return set_execute(s, Q_JOBS_INSERT_NEW, &set, e);
}

/* Writes the row of another job, which an addition has not locked. */
static bool drop_key(struct store *s, int64_t id, struct err *e)
{
	AUTO_QUERY q = {};

	if (!batch_needs_exclusive(s, e))
		return false;
	q = query_start(s->db, Q_JOB_KEY_DROP, e);
	query_int(&q, id);
	return query_finish(&q);
}

/* Explains a conflict by name. The job that caused it may be gone again: ERR_BUSY. */
static bool explain_name(struct store *s, struct adding *a, struct err *e)
{
	if (!job_check_name(s, a, e))
		return false;
	if (a->j->existed)
		return true;
	if (!a->err.kind && a->j->name)
		err_set(&a->err, ERR_BUSY, "the name '%s' was taken a moment ago; try again", a->j->name);
	else if (!a->err.kind)
		err_set(&a->err, ERR_BUSY, "the job conflicts with another one that was added at the same time; try again");
	return true;
}

/*
 * Explains why a row was not inserted: its key is known, or its name is taken. An expired key is
 * released and the row inserted again.
 */
static bool conflict_explain(struct store *s, struct adding *a, struct err *e)
{
	bool expired = false;
	int64_t id = 0;

	if (a->j->key && !job_check_find_key(s, a, &id, &expired, e))
		return false;
	if (a->j->existed) {
		a->j->id = id;
		return !a->j->run_at || job_check_first_run(s, a->j, e);
	}
	if (id && !expired)
		return job_check_refuse_key(a, id);
	if (expired && !drop_key(s, id, e))
		return false;
	if (expired && !insert_rows(s, a, 1, e))
		return false;
	return a->inserted || explain_name(s, a, e);
}

static void first_run_describe(struct set *set, const struct job_new *j)
{
	runs_describe(set, &(struct run_new){
		.id = j->run,
		.job = j->id,
		.uid = j->uid,
		.kind = RUN_KIND_SCHEDULE,
		.state = RUN_QUEUED,
		.slot = j->run_at,
		.due_at = j->run_at + j->run_delay,
		.revision = 1,
		.priority = j->priority,
		.queue = job_queue(j),
		.policy = j->policy,
		.now = j->now,
	});
}

static void describe_tags(struct set *set, const struct job_new *j)
{
	for (size_t i = 0; j->tags && i < j->tags->n; i++) {
		const char *equals = strchr(j->tags->v[i], '=');
		AUTO_TEXT key = equals ? xstrndup(j->tags->v[i], (size_t)(equals - j->tags->v[i]))
				       : xstrdup(j->tags->v[i]);

		set_item(set);
		set_text(set, "key", key);
		set_text(set, "value", equals ? equals + 1 : "");
		set_int(set, "job", j->id);
	}
}

bool job_tags_insert(struct store *s, const struct job_new *j, struct err *e)
{
	AUTO_SET tags = {};

	describe_tags(&tags, j);
	return set_execute(s, Q_TAGS_INSERT, &tags, e);
}

/* Gives existing jobs the new definition (EXISTS_REPLACE), after the new jobs are complete. */
static bool replaced_jobs_change(struct store *s, struct adding *a, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_job_change c = {.uid = -1, .id = a[i].replace, .what = "replaced", .reschedule = true, .to = *a[i].j};

		if (!a[i].replace)
			continue;
		if (!job_change(s, &c, a[i].by, &a[i].err, e))
			return false;
		a[i].j->run = c.run;
	}
	return true;
}

/* A job that an administrator adds as paused for another user is paused by the administrator. */
static void describe_pause(struct set *set, const struct job_new *j, const struct actor *by)
{
	bool imposed = j->by_admin && by && by->uid >= 0 && by->who[0] && by->uid != (int64_t)owner_uid(j->uid);

	set_item(set);
	set_int(set, "job", j->id);
	set_int(set, "uid", imposed ? by->uid : j->uid);
	set_text(set, "owner", imposed ? by->who : j->owner);
	set_int(set, "now", j->now);
}

static bool insert_pauses(struct store *s, struct set *set, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, Q_JOB_PAUSES_PUT, e);
	set_bind(&q, set);
	query_int(&q, 0);
	return query_finish(&q);
}

/* The first runs of new jobs. On a server no reply is needed: a new job has no other run. */
static bool insert_first_runs(struct store *s, struct adding *a, size_t n, struct err *e)
{
	AUTO_SET runs = {};

	for (size_t i = 0; i < n; i++)
		if (a[i].inserted && a[i].j->run_at)
			first_run_describe(&runs, a[i].j);
	if (!s->db->defer)
		return runs_insert(s, &runs, NULL, e);
	for (size_t i = 0; i < n; i++)
		if (a[i].inserted && a[i].j->run_at) {
			counter_change(s, COUNT_RUNS, RUN_QUEUED, job_queue(a[i].j), 1);
			owner_quota_add(s, a[i].j->uid, RUN_BYTES);
			wakeup_claim_by(s, a[i].j->run_at + a[i].j->run_delay);
		}
	return set_execute(s, Q_RUNS_INSERT_NEW, &runs, e);
}

static bool insert_rest(struct store *s, struct adding *a, size_t n, struct err *e)
{
	AUTO_SET tags = {};
	AUTO_SET links = {};
	AUTO_SET due = {};
	AUTO_SET pauses = {};

	for (size_t i = 0; i < n; i++) {
		const struct job_new *j = a[i].j;

		if (!a[i].inserted)
			continue;
		counter_change(s, COUNT_JOBS, j->paused ? JOB_PAUSED : JOB_ACTIVE, job_queue(j), 1);
		counter_change(s, COUNT_OWNER, j->uid, "", 1);
		owner_quota_add(s, j->uid, JOB_BYTES + (int64_t)strlen(j->spec));
		event_add(s, &(struct event_new){.at = j->now, .by = a[i].by, .what = EVENT_JOB_ADD, .object = j->name,
			.job = j->id, .owner = j->uid});
		describe_tags(&tags, j);
		job_chains_describe(&links, j);
		if (j->paused)
			describe_pause(&pauses, j, a[i].by);
		if (j->next_slot) {
			set_item(&due);
			set_int(&due, "job", j->id);
			set_int(&due, "segment", job_segment((uint64_t)j->id));
			set_int(&due, "slot", j->next_slot);
		}
	}
	return set_execute(s, Q_TAGS_INSERT, &tags, e) && set_execute(s, Q_CHAINS_INSERT, &links, e) && set_execute(s, Q_DUE_INSERT, &due, e) && insert_pauses(s, &pauses, e) &&
	       insert_first_runs(s, a, n, e);
}

static bool job_ids_assign(struct store *s, struct adding *a, size_t n, struct err *e)
{
	int64_t ids[CHUNK_JOBS], runs[CHUNK_JOBS];
	size_t with_run = 0;

	for (size_t i = 0; i < n; i++)
		with_run += a[i].j->run_at != 0;
	if (!row_ids_take(s, Q_JOB_IDS, n, ids, e) || !row_ids_take(s, Q_RUN_IDS, with_run, runs, e))
		return false;
	for (size_t i = n; i-- > 0;) {
		a[i].j->id = ids[i];
		a[i].j->run = a[i].j->run_at ? runs[--with_run] : 0;
	}
	return true;
}

/*
 * Counts the other jobs at the next slot of each new job. Jobs of a batch often share a slot; the
 * number of different slots is bounded, so that a large batch is not slowed down.
 */
static bool densities_count(struct store *s, struct adding *a, size_t n, struct err *e)
{
	struct {
		usec_t slot;
		int64_t jobs;
	} seen[SLOT_DENSITIES_MAX];
	size_t known = 0, k;

	if (s->db->defer)
		return slot_density_send(s, a, n, e);
	for (size_t i = 0; i < n; i++) {
		struct job_new *j = a[i].j;

		if (!a[i].inserted || !j->density_max || !j->next_slot)
			continue;
		for (k = 0; k < known && seen[k].slot != j->next_slot; k++)
			;
		if (k == SLOT_DENSITIES_MAX)
			continue;
		if (k == known) {
			seen[known++].slot = j->next_slot;
			if (!slot_density_of_job(s, j, &seen[k].jobs, e))
				return false;
		}
		j->density = seen[k].jobs;
	}
	return true;
}

static void first_slots_compute(struct adding *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].j->first_slot && !a[i].err.kind)
			a[i].j->first_slot(a[i].j, a[i].j->first_slot_arg);
}

static bool add_chunk(struct store *s, struct adding *a, size_t n, struct err *e)
{
	AUTO_DONE(job_names) names = {};

	if (!job_names_send(&names, s, a, n, e) || !job_check_all(s, a, n, e) || !job_ids_assign(s, a, n, e) || !job_names_read(&names) ||
	    !(names.free ? insert_new_rows : insert_rows)(s, a, n, e))
		return false;
	first_slots_compute(a, n);
	for (size_t i = 0; i < n; i++)
		if (!job_check_known(s, &a[i], e) ||
		    (!a[i].err.kind && !a[i].inserted && !a[i].met && !conflict_explain(s, &a[i], e)))
			return false;
	return densities_count(s, a, n, e) && insert_rest(s, a, n, e) && replaced_jobs_change(s, a, n, e);
}

/*
 * Adds the jobs in chunks, which keeps the parameter of a statement small. 'stop': end after the
 * first chunk with a refusal.
 */
static bool add_all(struct store *s, struct adding *a, size_t n, bool stop, struct err *e)
{
	size_t max = s->db->ops->row_locks ? CHUNK_JOBS : CHUNK_ALONE;

	for (size_t from = 0, to; from < n; from = to) {
		size_t bytes = 0;
		bool refused = false;

		if (from > 0 && store_give_way(s, e))
			return false;
		for (to = from; to < n && to - from < max && (to == from || bytes < CHUNK_BYTES); to++)
			bytes += strlen(a[to].j->spec);
		if (!add_chunk(s, a + from, to - from, e))
			return false;
		for (size_t i = from; i < to; i++)
			refused |= a[i].err.kind != ERR_NONE;
		if (stop && refused)
			break;
	}
	return true;
}

bool job_add_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	struct adding *a = xcalloc(n, sizeof(*a));
	bool ok;

	for (size_t i = 0; i < n; i++)
		a[i] = (struct adding){.j = &job_add_op(ops[i])->job, .by = &ops[i]->act.by};
	ok = add_all(s, a, n, false, e);
	for (size_t i = 0; ok && i < n; i++)
		if (a[i].err.kind) {
			ops[i]->ok = false;
			ops[i]->err = a[i].err;
			job_new_reset(a[i].j);
		}
	free(a);
	return ok;
}

bool job_add_many(struct store *s, const struct job_add_list *l, struct err *why, size_t *ret_failed, struct err *e)
{
	struct adding *a = xcalloc(l->n ? l->n : 1, sizeof(*a));
	bool ok;

	for (size_t i = 0; i < l->n; i++)
		a[i] = (struct adding){.j = &l->v[i], .by = l->by};
	ok = add_all(s, a, l->n, true, e);
	for (size_t i = 0; ok && i < l->n && !why->kind; i++) {
		*why = a[i].err;
		*ret_failed = i;
	}
	free(a);
	return ok;
}

static void refuse_bulk(struct op *op, const struct adding *a)
{
	for (size_t i = job_bulk_op(op)->n; i-- > 0;) {
		if (a[i].err.kind) {
			op->ok = false;
			op->err = a[i].err;
			job_bulk_op(op)->failed = i;
		}
	}
	for (size_t i = 0; !op->ok && i < job_bulk_op(op)->n; i++)
		job_new_reset(&job_bulk_op(op)->v[i]);
}

bool job_bulk_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	const struct db_ops *db = s->db->ops;

	for (size_t k = 0; k < n; k++) {
		struct op *op = ops[k];
		struct adding *a = xcalloc(job_bulk_op(op)->n ? job_bulk_op(op)->n : 1, sizeof(*a));
		size_t mark = counters_mark(s), events = event_mark(s);
		bool ok;

		for (size_t i = 0; i < job_bulk_op(op)->n; i++)
			a[i] = (struct adding){.j = &job_bulk_op(op)->v[i], .by = &op->act.by};
		ok = db->savepoint(s->db, e) && add_all(s, a, job_bulk_op(op)->n, true, e);
		if (ok)
			refuse_bulk(op, a);
		free(a);
		if (!op->ok) {
			counters_rewind(s, mark);
			event_rewind(s, events);
		}
		if (!ok || !(op->ok ? db->release : db->rollback_to)(s->db, e))
			return false;
	}
	return true;
}

void job_new_reset(struct job_new *j)
{
	j->id = j->run = j->density = 0;
	j->existed = j->replaced = false;
	if (j->first_slot)
		j->next_slot = slot_search_from(j->now); /* the job gets another number */
}

void job_add_reset(struct op *op)
{
	job_new_reset(&job_add_op(op)->job);
}

void job_bulk_reset(struct op *op)
{
	struct op_job_bulk *o = job_bulk_op(op);

	for (size_t i = 0; i < o->n; i++)
		job_new_reset(&o->v[i]);
	o->failed = 0;
}

void job_bulk_free(struct op *op)
{
	free(job_bulk_op(op)->v);
}

/* ---- locks ---- */

/*
 * A new job is unknown to all other engines. Its queue may be removed, by an operation that excludes
 * all writers. Links to other jobs must not form a cycle, and --if-exists may change another job.
 */
static enum writers_lock job_new_writers(const struct job_new *j)
{
	if ((j->after && j->after->n > 0) || (j->name && j->if_exists != EXISTS_ERROR))
		return WRITERS_EXCLUSIVE;
	return j->queue && strcmp(j->queue, QUEUE_DEFAULT) != 0 ? WRITERS_SHARED : WRITERS_FREE;
}

enum writers_lock job_add_writers(const struct op *op)
{
	return job_new_writers(&job_add_op(op)->job);
}

enum writers_lock job_bulk_writers(const struct op *op)
{
	const struct op_job_bulk *o = job_bulk_op(op);
	enum writers_lock least = WRITERS_FREE;

	for (size_t i = 0; i < o->n; i++)
		if (job_new_writers(&o->v[i]) < least)
			least = job_new_writers(&o->v[i]);
	return least;
}

void job_new_owner(const struct store *s, const struct job_new *j, struct set *owners)
{
	int64_t n;

	if (j->name || j->key || (j->limit && !owner_count_is_low(s, COUNT_OWNER, j->uid, j->limit, &n)) ||
	    (j->bytes_limit && !owner_count_is_low(s, COUNT_STORE, j->uid, j->bytes_limit, &n)))
		set_id(owners, j->uid);
}

void job_add_owners(const struct store *s, const struct op *op, struct set *owners, struct set *jobs)
{
	(void)jobs;
	job_new_owner(s, &job_add_op(op)->job, owners);
}

void job_bulk_owners(const struct store *s, const struct op *op, struct set *owners, struct set *jobs)
{
	(void)jobs;
	for (size_t i = 0; i < job_bulk_op(op)->n; i++)
		job_new_owner(s, &job_bulk_op(op)->v[i], owners);
}
