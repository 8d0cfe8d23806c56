/* SPDX-License-Identifier: Apache-2.0 */
/* Checks new jobs: idempotency keys, names, owner limits, queues. */
#include "store/ops/job/job_checks.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/pause.h"
#include "store/ops/job/job_chains.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pauses.h"
#include "store/ops/limits.h"
#include "store/ops/owner_quota.h"
#include "store/ops/owners.h"
#include "store/ops/run/slot_density.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <stdio.h>
#include <string.h>

#define KEY_KEPT USEC_DAY /* the key of a removed job refers to that job for at least this long */

static bool conflict_set(struct adding *a, const char *field)
{
	a->err.kind = ERR_CONFLICT;
	snprintf(a->err.field, sizeof(a->err.field), "%s", field);
	return true;
}

bool job_check_find_key(struct store *s, struct adding *a, int64_t *ret_id, bool *ret_expired, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_BY_KEY, e);
	enum job_state state;
	usec_t removed_at;

	*ret_id = 0;
	query_int(&q, a->j->uid);
	query_text(&q, a->j->key);
	if (!query_row(&q))
		return !q.failed;
	*ret_id = query_get_int(&q);
	state = (enum job_state)query_get_int(&q);
	removed_at = query_get_int(&q);
	*ret_expired = state == JOB_REMOVED && removed_at + KEY_KEPT < a->j->now;
	if (!*ret_expired && query_get_int(&q) == job_key_digest(a->j))
		a->j->existed = true;
	return true;
}

bool job_check_first_run(struct store *s, struct job_new *j, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_FIRST_RUN, e);

	query_int(&q, j->id);
	j->run = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

/* Applies if_exists: a live job has the name. False: the submission is refused. */
static bool name_taken_apply(struct adding *a, int64_t id, int64_t asked)
{
	struct job_new *j = a->j;

	if (j->if_exists == EXISTS_ERROR)
		return false;
	j->id = id;
	j->run = 0;
	j->existed = true;
	j->replaced = j->if_exists == EXISTS_REPLACE && (!j->asked || asked != job_content_digest(j->uid, j->asked));
	a->replace = j->replaced ? id : 0;
	a->met = true;
	return true;
}

bool job_check_name(struct store *s, struct adding *a, struct err *e)
{
	AUTO_QUERY q = {};
	const struct job_new *j = a->j;

	if (!j->name)
		return true;
	q = query_start(s->db, Q_JOB_BY_LIVE_NAME, e);
	query_int(&q, j->uid);
	query_text(&q, j->name);
	if (query_row(&q)) {
		long long id = query_get_int(&q);

		if (name_taken_apply(a, id, query_get_int(&q)))
			return true;
		err_set(&a->err, ERR_CONFLICT, "the name '%s' is taken by job %lld; choose another, or end "
			"that one with 'jobctl rm %lld', or add with --if-exists", j->name, id, id);
		conflict_set(a, "name");
	}
	return !q.failed;
}

bool job_check_refuse_key(struct adding *a, int64_t id)
{
	err_set(&a->err, ERR_CONFLICT, "the key '%s' belongs to job %lld, which has another definition; "
		"see 'jobctl show %lld'", a->j->key, (long long)id, (long long)id);
	return conflict_set(a, "key");
}

/* Refuses jobs beyond their owner's limit, counting the accepted ones before them in this chunk. */
static bool check_limits(struct store *s, struct adding *a, size_t n, struct err *e)
{
	int64_t uid = -1, live = 0;

	for (size_t i = 0; i < n; i++) {
		const struct job_new *j = a[i].j;

		if (!j->limit)
			continue;
		if (j->uid != uid) { /* jobs of one owner are usually adjacent */
			uid = j->uid;
			if (!owner_count_read(s, COUNT_OWNER, j->uid, 0, j->limit, &live, e))
				return false;
			for (size_t k = 0; k < i; k++)
				live += a[k].j->uid == j->uid && !a[k].err.kind;
		}
		if (live < j->limit)
			live++;
		else
			err_set(&a[i].err, ERR_LIMIT, "'%s' has %lld jobs, more than %lld are not allowed; "
				"remove some with 'jobctl rm'", j->owner, (long long)live,
				(long long)j->limit);
	}
	return true;
}

/*
 * Refuses jobs beyond their owner's byte limit, counting the accepted ones before them in this
 * chunk.
 */
static bool new_jobs_check_bytes(struct store *s, struct adding *a, size_t n, struct err *e)
{
	int64_t uid = -1, used = 0;

	for (size_t i = 0; i < n; i++) {
		const struct job_new *j = a[i].j;
		int64_t size = JOB_BYTES + (int64_t)strlen(j->spec);

		if (!j->bytes_limit || a[i].err.kind)
			continue;
		if (j->uid != uid) {
			uid = j->uid;
			if (!owner_count_read(s, COUNT_STORE, j->uid, 0, j->bytes_limit, &used, e))
				return false;
			for (size_t k = 0; k < i; k++)
				used += a[k].j->uid == j->uid && !a[k].err.kind ? JOB_BYTES + (int64_t)strlen(a[k].j->spec) : 0;
		}
		if (size <= j->bytes_limit - used)
			used += size;
		else
			owner_quota_refuse(&a[i].err, j->owner, used, j->bytes_limit);
	}
	return true;
}

/*
 * Whether the key is known. A repeated submission is not refused, even if its queue was removed or
 * its time has passed since.
 */
static bool key_is_known(struct store *s, struct adding *a, bool *ret, struct err *e)
{
	bool expired = false;
	int64_t id = 0;

	if (a->j->key && !job_check_find_key(s, a, &id, &expired, e))
		return false;
	*ret = id && !expired;
	return true;
}

static bool check_late(struct store *s, struct adding *a, size_t n, struct err *e)
{
	bool seen;

	for (size_t i = 0; i < n; i++) {
		if (a[i].err.kind || !a[i].j->late)
			continue;
		if (!key_is_known(s, &a[i], &seen, e))
			return false;
		if (!seen)
			a[i].err = *a[i].j->late;
	}
	return true;
}

/*
 * Refuses jobs whose queue does not exist. Adjacent jobs usually have the same queue, which is
 * checked once.
 */
static bool check_queues(struct store *s, struct adding *a, size_t n, struct err *e)
{
	const char *known = NULL;
	bool seen;

	for (size_t i = 0; i < n; i++) {
		if (a[i].err.kind || !a[i].j->queue || (known && strcmp(known, a[i].j->queue) == 0))
			continue;
		if (!limit_queue_check(s, a[i].j->queue, &a[i].err, e))
			return false;
		if (!a[i].err.kind) {
			known = a[i].j->queue;
			continue;
		}
		if (!key_is_known(s, &a[i], &seen, e))
			return false;
		if (seen)
			a[i].err = (struct err){};
	}
	return true;
}

static void deny_name(struct adding *a, int64_t job, const struct pause_order *p)
{
	AUTO_TEXT subject = xprintf("job %lld '%s', which you cancelled,", (long long)job, a->j->name);

	pause_deny(&a->err, subject, p);
	snprintf(a->err.field, sizeof(a->err.field), "name");
}

/* A submission whose key is known adds nothing, so it is not denied. */
static bool spare_known_keys(struct store *s, struct adding *a, size_t n, struct err *e)
{
	bool known;

	for (size_t i = 0; i < n; i++) {
		if (a[i].err.kind != ERR_DENIED || !a[i].j->key)
			continue;
		if (!key_is_known(s, &a[i], &known, e))
			return false;
		if (known)
			a[i].err = (struct err){};
	}
	return true;
}

/*
 * An owner cannot escape the pause of an administrator by cancelling the job and adding it again.
 */
static bool check_paused_names(struct store *s, struct adding *a, size_t n, struct err *e)
{
	AUTO_SET names = {};
	AUTO_QUERY q = {};

	for (size_t i = 0; i < n; i++) {
		if (a[i].err.kind || !a[i].j->name || a[i].j->by_admin)
			continue;
		set_item(&names);
		set_int(&names, "id", (int64_t)i);
		set_int(&names, "uid", a[i].j->uid);
		set_text(&names, "name", a[i].j->name);
	}
	if (names.n == 0)
		return true;
	q = query_start(s->db, Q_NAMES_PAUSED, e);
	set_bind(&q, &names);
	query_int(&q, a->j->now);
	while (query_row(&q)) {
		struct pause_order p = {.scope = PAUSE_JOB};
		int64_t i = query_get_int(&q), job = query_get_int(&q), owner = query_get_int(&q);

		p.by_uid = query_get_int(&q);
		p.by_name = (char *)query_get_text(&q);
		p.at = query_get_int(&q);
		p.until = query_get_int(&q);
		p.reason = (char *)query_get_text(&q);
		p.later = query_get_int(&q);
		if (i >= 0 && (size_t)i < n && pause_is_imposed(&p, owner))
			deny_name(&a[i], job, &p);
	}
	return !q.failed && spare_known_keys(s, a, n, e);
}

bool job_check_all(struct store *s, struct adding *a, size_t n, struct err *e)
{
	return check_limits(s, a, n, e) && new_jobs_check_bytes(s, a, n, e) && check_late(s, a, n, e) && check_queues(s, a, n, e) &&
	       check_paused_names(s, a, n, e) && job_chains_check_all(s, a, n, e);
}

bool job_check_known(struct store *s, struct adding *a, struct err *e)
{
	struct err limit = a->err;

	if (a->err.kind != ERR_LIMIT || a->j->if_exists == EXISTS_ERROR)
		return true;
	a->err = (struct err){};
	if (!job_check_name(s, a, e))
		return false;
	if (!a->j->existed)
		a->err = limit;
	return true;
}

/* ---- dry run ---- */

static bool dry_run_one(struct store *s, struct adding *a, struct err *e)
{
	bool expired = false;
	int64_t id = 0;

	if (!check_limits(s, a, 1, e) || !new_jobs_check_bytes(s, a, 1, e) || !check_queues(s, a, 1, e) || !check_paused_names(s, a, 1, e) || !job_check_known(s, a, e) ||
	    (a->j->key && !job_check_find_key(s, a, &id, &expired, e)))
		return false;
	if (a->err.kind)
		return true;
	if (a->j->existed && !a->met) {
		a->j->id = id;
		return !a->j->run_at || job_check_first_run(s, a->j, e);
	}
	if (id && !expired)
		return job_check_refuse_key(a, id);
	return job_check_name(s, a, e) && (!a->j->density_max || !a->j->next_slot ||
		slot_density_count(s, a->j->next_slot, a->j->density_max, &a->j->density, e));
}

bool job_dry_run(struct store *s, struct job_new *j, struct err *e)
{
	struct adding a = {.j = j};
	AUTO_TX tx = {};

	job_new_reset(j);
	if (!tx_begin(&tx, s, false, e) || !dry_run_one(s, &a, e) || !tx_commit(&tx, e))
		return false;
	if (!a.err.kind)
		return true;
	job_new_reset(j);
	if (e)
		*e = a.err;
	return false;
}
