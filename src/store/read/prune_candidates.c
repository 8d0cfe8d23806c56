/* SPDX-License-Identifier: Apache-2.0 */
/* Finds history that may be deleted, in small steps. */
#include "store/read/prune_candidates.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/job.h"
#include "store/counters.h"
#include "store/store_private.h"
#include "store/tx.h"

#define STEP_ROWS 200  /* rows examined in one step */
#define STEP_RUNS 500  /* runs deleted in one step */
#define NOT_DEAD 1     /* as dead_before: keeps all dead letters */

void prune_candidates_done(struct prune_candidates *l)
{
	free(l->runs);
	free(l->jobs);
	*l = (struct prune_candidates){};
}

static void add_id(int64_t **ids, size_t *n, int64_t id)
{
	*ids = xgrow(*ids, *n, sizeof(**ids));
	(*ids)[(*n)++] = id;
}

static bool step_is_full(const struct prune_candidates *l)
{
	return l->n_runs >= STEP_RUNS;
}

/* Finds the ended runs of a job before a slot, oldest first. */
static bool find_runs(struct store *s, int64_t job, usec_t before, usec_t dead_before, struct prune_candidates *l,
	struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PRUNE_RUNS_OF, e);

	query_int(&q, job);
	query_int(&q, before);
	query_int(&q, dead_before);
	query_int(&q, (int64_t)(STEP_RUNS - l->n_runs));
	while (query_row(&q))
		add_id(&l->runs, &l->n_runs, query_get_int(&q));
	return !q.failed;
}

/* ---- ended jobs ---- */

static bool job_is_kept(struct store *s, int64_t job, usec_t dead_before, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PRUNE_JOB_KEPT, e);

	query_int(&q, job);
	query_int(&q, dead_before);
	*ret = query_row(&q);
	return !q.failed;
}

struct ended_job {
	int64_t id;
	usec_t at;
};

static bool ended_jobs_read(struct store *s, usec_t before, const struct prune_pass *pass, struct ended_job *jobs, size_t *ret_n,
	struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PRUNE_JOBS, e);

	query_int(&q, before);
	query_int(&q, pass->job_at);
	query_int(&q, pass->job);
	query_int(&q, STEP_ROWS);
	for (*ret_n = 0; query_row(&q) && *ret_n < STEP_ROWS; ++*ret_n) {
		jobs[*ret_n].id = query_get_int(&q);
		jobs[*ret_n].at = query_get_int(&q);
	}
	return !q.failed;
}

/*
 * A job is deleted with its last run. If it has more runs than one step deletes, the next step
 * continues with it.
 */
static bool ended_jobs_find(struct store *s, usec_t before, usec_t dead_before, struct prune_pass *pass, struct prune_candidates *l,
	struct map *seen, size_t *ret_n, struct err *e)
{
	struct ended_job jobs[STEP_ROWS];

	if (!ended_jobs_read(s, before, pass, jobs, ret_n, e))
		return false;
	for (size_t i = 0; i < *ret_n && !step_is_full(l); i++) {
		bool kept;

		if (!job_is_kept(s, jobs[i].id, dead_before, &kept, e))
			return false;
		if (!kept && !find_runs(s, jobs[i].id, USEC_NEVER, dead_before, l, e))
			return false;
		map_put(seen, jobs[i].id, s);
		if (step_is_full(l))
			break;
		if (!kept)
			add_id(&l->jobs, &l->n_jobs, jobs[i].id);
		pass->job_at = jobs[i].at;
		pass->job = jobs[i].id;
	}
	return true;
}

/* ---- old runs ---- */

struct old_run {
	int64_t id, job;
	usec_t slot;
	bool live;
};

static size_t read_old_rows(struct query *q, struct old_run *runs)
{
	size_t n = 0;

	for (; n < STEP_ROWS && query_row(q); n++) {
		runs[n].id = query_get_int(q);
		runs[n].job = query_get_int(q);
		runs[n].slot = query_get_int(q);
		runs[n].live = query_get_int(q) < JOB_FINISHED;
	}
	return n;
}

static bool read_old(struct store *s, usec_t before, const struct prune_pass *pass, struct old_run *runs, size_t *ret_n,
	struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PRUNE_SLOTS, e);

	query_int(&q, before);
	query_int(&q, pass->slot);
	query_int(&q, pass->run);
	query_int(&q, STEP_ROWS);
	*ret_n = read_old_rows(&q, runs);
	return !q.failed;
}

/*
 * *ret: the slot of the n-th newest run of a job; older runs may be deleted. 0: it has fewer runs.
 */
static bool nth_slot(struct store *s, int64_t job, int64_t n, usec_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PRUNE_NTH, e);

	query_int(&q, job);
	query_int(&q, n > 0 ? n - 1 : 0);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

/*
 * Each run that becomes old causes a check of its job, which deletes all runs that exceed the
 * number to keep. An old run that is kept needs no later check of its own: when newer runs become
 * old, the job is checked again.
 */
static bool old_runs_find(struct store *s, const struct prune_rule *rule, usec_t before, usec_t dead_before,
	struct prune_pass *pass, struct prune_candidates *l, struct map *seen, size_t *ret_n, struct err *e)
{
	struct old_run runs[STEP_ROWS];

	if (!read_old(s, before, pass, runs, ret_n, e))
		return false;
	for (size_t i = 0; i < *ret_n && !step_is_full(l); i++) {
		usec_t newest = before;

		if (!map_get(seen, runs[i].job)) {
			if (runs[i].live && !nth_slot(s, runs[i].job, rule->runs, &newest, e))
				return false;
			if (!find_runs(s, runs[i].job, newest < before ? newest : before, dead_before, l, e))
				return false;
			if (step_is_full(l))
				break;
			map_put(seen, runs[i].job, s);
		}
		pass->slot = runs[i].slot;
		pass->run = runs[i].id;
	}
	return true;
}

bool prune_candidates_find(struct store *s, const struct prune_rule *rule, usec_t now, struct prune_pass *pass,
	struct prune_candidates *ret, struct err *e)
{
	usec_t before = now - rule->age, dead_before = now - rule->dead_age;
	size_t jobs = 0, runs = 0;
	AUTO_DONE(map) seen = {};
	AUTO_TX tx = {};

	*ret = (struct prune_candidates){};
	if (!tx_begin(&tx, s, false, e) || !ended_jobs_find(s, before, dead_before, pass, ret, &seen, &jobs, e) ||
	    (!step_is_full(ret) && !old_runs_find(s, rule, before, dead_before, pass, ret, &seen, &runs, e)) || !tx_commit(&tx, e)) {
		prune_candidates_done(ret);
		return false;
	}
	pass->done = jobs < STEP_ROWS && runs < STEP_ROWS && !step_is_full(ret);
	return true;
}

/* ---- history of one owner ---- */

static bool read_old_of(struct store *s, const struct prune_pass *pass, struct old_run *runs, size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PRUNE_SLOTS_OF, e);

	query_int(&q, pass->owner);
	query_int(&q, pass->slot);
	query_int(&q, pass->run);
	query_int(&q, STEP_ROWS);
	*ret_n = read_old_rows(&q, runs);
	return !q.failed;
}

static bool find_removed(struct store *s, struct prune_pass *pass, struct prune_candidates *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PRUNE_REMOVED_OF, e);

	query_int(&q, pass->owner);
	query_int(&q, pass->job);
	query_int(&q, STEP_ROWS);
	while (query_row(&q)) {
		pass->job = query_get_int(&q);
		add_id(&l->jobs, &l->n_jobs, pass->job);
	}
	pass->removed_done = l->n_jobs < STEP_ROWS;
	return !q.failed;
}

/* A live job keeps its newest run; an ended job is deleted with all its runs. */
static bool owner_runs_find(struct store *s, const struct old_run *r, usec_t upto, struct prune_candidates *l, struct err *e)
{
	usec_t newest = USEC_NEVER;
	bool kept = true;

	if (r->live && !nth_slot(s, r->job, 1, &newest, e))
		return false;
	if (!r->live && !job_is_kept(s, r->job, NOT_DEAD, &kept, e))
		return false;
	if (r->live || kept)
		newest = newest <= upto ? newest : upto + 1;
	if (!find_runs(s, r->job, newest, NOT_DEAD, l, e))
		return false;
	if (!kept && !step_is_full(l))
		add_id(&l->jobs, &l->n_jobs, r->job);
	return true;
}

static bool find_of_owner(struct store *s, struct prune_pass *pass, struct prune_candidates *l, struct err *e)
{
	struct old_run runs[STEP_ROWS];
	AUTO_DONE(map) seen = {};
	size_t n = 0;

	if (!pass->removed_done && !find_removed(s, pass, l, e))
		return false;
	if (l->n_jobs > 0)
		return true;
	if (!read_old_of(s, pass, runs, &n, e))
		return false;
	for (size_t i = 0; i < n && !step_is_full(l); i++) {
		pass->slot = runs[i].slot;
		pass->run = runs[i].id;
		if (map_get(&seen, runs[i].job))
			continue;
		map_put(&seen, runs[i].job, s);
		if (!owner_runs_find(s, &runs[i], runs[n - 1].slot, l, e))
			return false;
	}
	if (n < STEP_ROWS && !step_is_full(l))
		prune_candidates_owner_done(pass);
	return true;
}

bool prune_candidates_of_owner(struct store *s, struct prune_pass *pass, struct prune_candidates *ret, struct err *e)
{
	AUTO_TX tx = {};

	*ret = (struct prune_candidates){};
	if (tx_begin(&tx, s, false, e) && find_of_owner(s, pass, ret, e) && tx_commit(&tx, e))
		return true;
	prune_candidates_done(ret);
	return false;
}

bool prune_candidates_outputs(struct store *s, int64_t uid, size_t n, struct kept_output *ret, size_t *ret_n, struct err *e)
{
	AUTO_TX tx = {};
	AUTO_QUERY q = {};

	*ret_n = 0;
	if (!tx_begin(&tx, s, false, e))
		return false;
	q = query_start(s->db, Q_KEPT_OUTPUTS, e);
	query_int(&q, uid);
	query_int(&q, (int64_t)n);
	while (*ret_n < n && query_row(&q)) {
		struct kept_output *o = &ret[(*ret_n)++];

		o->run = query_get_int(&q);
		o->fence = query_get_int(&q);
		o->attempt = query_get_int(&q);
		o->bytes = query_get_int(&q);
		o->uid = uid;
	}
	query_done(&q);
	return !q.failed && tx_commit(&tx, e);
}

bool store_sizes(struct store *s, struct store_sizes *ret, struct err *e)
{
	struct store_sizes z = {};
	AUTO_TX tx = {};
	AUTO_QUERY bytes = {};
	AUTO_QUERY outputs = {};

	if (!tx_begin(&tx, s, false, e))
		return false;
	bytes = query_start(s->db, Q_STORE_BYTES, e);
	if (query_row(&bytes))
		z.bytes = query_get_int(&bytes);
	if (bytes.failed)
		return false;
	outputs = query_start(s->db, Q_COUNTERS_SUM, e);
	query_int(&outputs, COUNT_OUTPUT);
	while (query_row(&outputs)) {
		int64_t uid = query_get_int(&outputs), n = query_get_int(&outputs);

		z.outputs += n;
		if (n > z.most) {
			z.second = z.most;
			z.most = n;
			z.most_uid = uid;
		} else if (n > z.second) {
			z.second = n;
		}
	}
	if (outputs.failed)
		return false;
	query_done(&bytes);
	query_done(&outputs);
	*ret = z;
	return tx_commit(&tx, e);
}
