/* SPDX-License-Identifier: Apache-2.0 */
/* Reads single objects: a job by number or name, a run with its attempts, the end of its output. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "store/lists.h"
#include "store/read/single.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"

/* Reads the jobs of a JSON array of numbers, in its order, without those of other owners. */
bool jobs_read(struct store *s, int64_t uid, const char *ids, struct job_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_GET, e);

	query_text(&q, ids);
	query_int(&q, uid);
	while (query_row(&q)) {
		struct job *j = row_job(&q, e);

		if (!j)
			return false;
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n++] = j;
	}
	return !q.failed;
}

static bool read_job_by_id(struct store *s, int64_t uid, int64_t id, struct job **ret, struct err *e)
{
	AUTO_DONE(job_list) found = {};
	AUTO_SET ids = {};

	set_id(&ids, id);
	if (!jobs_read(s, uid, set_json(&ids), &found, e))
		return false;
	*ret = found.n ? STEAL(found.v[0]) : NULL;
	return true;
}

bool store_job_get(struct store *s, int64_t uid, int64_t id, struct job **ret, struct err *e)
{
	struct job *job = NULL;
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !read_job_by_id(s, uid, id, &job, e) || !tx_commit(&tx, e)) {
		job_free(job);
		return false;
	}
	if (!job)
		return err_set(e, ERR_NOT_FOUND, "no job %lld", (long long)id);
	*ret = job;
	return true;
}

static bool find_id(struct store *s, const char *name, int64_t low, int64_t high, int64_t *ret_id,
	int64_t *ret_uid, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_FIND, e);

	*ret_id = 0;
	query_text(&q, name);
	query_int(&q, low);
	query_int(&q, high);
	if (query_row(&q)) {
		*ret_id = query_get_int(&q);
		*ret_uid = query_get_int(&q);
	}
	return !q.failed;
}

static bool find_job_by_name(struct store *s, int64_t uid, const char *name, struct job **ret, struct err *e)
{
	int64_t id, owner = -1, other = 0;

	if (!find_id(s, name, uid < 0 ? 0 : uid, uid < 0 ? INT64_MAX : uid, &id, &owner, e) ||
	    (id && uid < 0 && !find_id(s, name, owner + 1, INT64_MAX, &other, &owner, e)))
		return false;
	if (other)
		return err_set(e, ERR_CONFLICT, "several owners have a job '%s', %lld and %lld among them; use "
			"the number", name, (long long)id, (long long)other);
	if (!id)
		return err_set(e, ERR_NOT_FOUND, "no job '%s'", name);
	return read_job_by_id(s, -1, id, ret, e);
}

bool store_job_find(struct store *s, int64_t uid, const char *name, struct job **ret, struct err *e)
{
	AUTO(job) *job = NULL;
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !find_job_by_name(s, uid, name, &job, e) || !tx_commit(&tx, e))
		return false;
	*ret = STEAL(job);
	return true;
}

static bool read_job_names(struct store *s, int64_t uid, size_t limit, struct strv *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, uid < 0 ? Q_JOB_NAMES_ALL : Q_JOB_NAMES, e);

	if (uid >= 0)
		query_int(&q, uid);
	query_int(&q, (int64_t)limit);
	while (query_row(&q))
		strv_add(ret, query_get_text(&q));
	return !q.failed;
}

bool store_job_names(struct store *s, int64_t uid, size_t limit, struct strv *ret, struct err *e)
{
	AUTO_DONE(strv) names = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !read_job_names(s, uid, limit, &names, e) || !tx_commit(&tx, e))
		return false;
	*ret = names;
	names = (struct strv){};
	return true;
}

static bool read_newest(struct store *s, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_NEWEST, e);

	if (query_row(&q))
		*ret = query_get_int(&q);
	return !q.failed;
}

bool store_run_get(struct store *s, int64_t uid, int64_t id, struct run **ret, struct err *e)
{
	AUTO(run) *run = NULL;
	AUTO_TX tx = {};

	int64_t newest = 0;

	if (!tx_begin(&tx, s, false, e) || !row_run_read(s, uid, id, &run, e) ||
	    (!run && !read_newest(s, &newest, e)) || !tx_commit(&tx, e))
		return false;
	if (!run && id > 0 && id < newest)
		return err_set(e, ERR_NOT_FOUND, "no run %lld, or none any more: one that was planned is taken back when its "
			"job is changed or paused, and old ones are not kept for ever", (long long)id);
	if (!run)
		return err_set(e, ERR_NOT_FOUND, "no run %lld", (long long)id);
	*ret = STEAL(run);
	return true;
}

static struct attempt *row_attempt(struct query *q)
{
	struct attempt *a = xcalloc(1, sizeof(*a));

	a->run = query_get_int(q);
	a->number = query_get_int(q);
	a->fence = query_get_int(q);
	a->node = query_get_copy(q);
	a->spawner = query_get_copy(q);
	a->pid = query_get_int(q);
	a->started_at = query_get_int(q);
	a->ended_at = query_get_int(q);
	a->outcome = (enum attempt_outcome)query_get_int(q);
	a->exit_code = query_get_int(q);
	a->term_signal = query_get_int(q);
	a->cpu_user = query_get_int(q);
	a->cpu_system = query_get_int(q);
	a->max_rss = query_get_int(q);
	a->io_read = query_get_int(q);
	a->io_written = query_get_int(q);
	a->output_bytes = query_get_int(q);
	a->output_dropped = query_get_int(q);
	a->error = query_get_copy(q);
	a->node_name = query_get_copy(q);
	return a;
}

static bool read_attempts(struct store *s, int64_t run, struct attempt_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_ATTEMPTS_OF, e);

	query_int(&q, run);
	while (query_row(&q)) {
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n++] = row_attempt(&q);
	}
	return !q.failed;
}

bool store_attempts(struct store *s, int64_t run, struct attempt_list *ret, struct err *e)
{
	AUTO_DONE(attempt_list) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !read_attempts(s, run, &found, e) || !tx_commit(&tx, e))
		return false;
	*ret = found;
	found = (struct attempt_list){};
	return true;
}

bool store_output_tail(struct store *s, int64_t run, int64_t fence, char **ret, struct err *e)
{
	AUTO_TEXT tail = NULL;
	AUTO_QUERY q = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e))
		return false;
	q = query_start(s->db, Q_OUTPUT_GET, e);
	query_int(&q, run);
	query_int(&q, fence);
	if (query_row(&q))
		tail = query_get_copy(&q);
	if (q.failed)
		return false;
	query_done(&q);
	if (!tx_commit(&tx, e))
		return false;
	*ret = STEAL(tail);
	return true;
}

static bool revision_spec_read(struct store *s, int64_t job, int64_t revision, char **ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICE_SPEC, e);

	query_int(&q, job);
	query_int(&q, revision);
	*ret = query_row(&q) ? query_get_copy(&q) : NULL;
	return !q.failed;
}

bool store_revision_spec(struct store *s, int64_t job, int64_t revision, char **ret, struct err *e)
{
	AUTO_TEXT spec = NULL;
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !revision_spec_read(s, job, revision, &spec, e) || !tx_commit(&tx, e))
		return false;
	*ret = STEAL(spec);
	return true;
}

static bool node_name_read(struct store *s, const char *engine, char **ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICE_NODE, e);

	query_text(&q, engine);
	*ret = query_row(&q) ? query_get_copy(&q) : NULL;
	return !q.failed;
}

bool store_node_name(struct store *s, const char *engine, char **ret, struct err *e)
{
	AUTO_TEXT name = NULL;
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !node_name_read(s, engine, &name, e) || !tx_commit(&tx, e))
		return false;
	*ret = STEAL(name);
	return true;
}
