/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs come into the store: one by one in a group, or many together. */
#include "base/map.h"
#include "base/text.h"
#include "store/private.h"
#include <stdio.h>
#include <string.h>

#define CHUNK_JOBS 1000
#define CHUNK_BYTES (4 << 20) /* of specs in one statement */
#define CROWDS_MAX 8          /* slots of a chunk whose jobs are counted */

/* A job on its way in. */
struct adding {
	struct job_new *j;
	const struct actor *by;
	struct err err; /* kind ERR_NONE: fine so far */
	bool met;        /* its name is known, and what to do then */
	int64_t replace; /* the job that gets this definition instead; 0: none */
	bool inserted;
};

static bool refuse(struct adding *a, const char *field)
{
	a->err.kind = ERR_CONFLICT;
	snprintf(a->err.field, sizeof(a->err.field), "%s", field);
	return true;
}

bool ids_take(struct store *s, int query, size_t n, int64_t *ids, struct err *e)
{
	AUTO_QUERY q = {};
	size_t got = 0;

	if (n == 0)
		return true;
	q = query_start(s->db, query, e);
	query_int(&q, (int64_t)n);
	while (query_row(&q) && got < n)
		ids[got++] = query_get_int(&q);
	return !q.failed && (got == n || err_set(e, ERR_INTERNAL, "the store gave too few numbers"));
}

int64_t content_digest(int64_t uid, const char *content)
{
	return content ? (int64_t)job_digest(uid, NULL, content) : 0;
}

static int64_t key_digest(const struct job_new *j)
{
	return content_digest(j->uid, j->content ? j->content : j->spec);
}

const char *job_queue(const struct job_new *j)
{
	return j->queue ? j->queue : QUEUE_DEFAULT;
}

static void describe_job(struct set *set, const struct job_new *j)
{
	set_item(set);
	set_int(set, "id", j->id);
	set_int(set, "uid", j->uid);
	set_text(set, "owner", j->owner);
	set_text(set, "name", j->name);
	set_text(set, "key", j->key);
	if (j->key)
		set_int(set, "content", key_digest(j));
	set_int(set, "asked", content_digest(j->uid, j->asked));
	set_int(set, "segment", job_segment((uint64_t)j->id));
	set_text(set, "queue", job_queue(j));
	set_int(set, "priority", j->priority);
	set_int(set, "boots", j->boots);
	set_int(set, "state", j->paused ? JOB_PAUSED : JOB_ACTIVE);
	set_int(set, "now", j->now);
	set_int(set, "digest", (int64_t)job_digest(j->uid, j->owner, j->spec));
	set_text(set, "spec", j->spec);
}

/* Tries to insert all that are neither refused nor known; marks those that are in now. */
static bool insert_rows(struct store *s, struct adding *a, size_t n, struct err *e)
{
	AUTO_DONE(map) by_id = {};
	AUTO_SET set = {};
	AUTO_QUERY q = query_start(s->db, Q_JOBS_INSERT, e);

	for (size_t i = 0; i < n; i++)
		if (!a[i].err.kind && !a[i].inserted && !a[i].j->existed) {
			describe_job(&set, a[i].j);
			map_put(&by_id, a[i].j->id, &a[i]);
		}
	query_text(&q, set_json(&set));
	while (set.n && query_row(&q)) {
		struct adding *in = map_get(&by_id, query_get_int(&q));

		if (in)
			in->inserted = true;
	}
	return !q.failed;
}

/* The job that has this key. ret_id 0: none. */
static bool look_up_key(struct store *s, struct adding *a, int64_t *ret_id, bool *ret_expired, struct err *e)
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
	if (!*ret_expired && query_get_int(&q) == key_digest(a->j))
		a->j->existed = true;
	return true;
}

static bool first_run(struct store *s, struct job_new *j, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_FIRST_RUN, e);

	query_int(&q, j->id);
	j->run = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

static bool drop_key(struct store *s, int64_t id, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_KEY_DROP, e);

	query_int(&q, id);
	return query_finish(&q);
}

/* A live job has the name, and the submission says what then. */
static bool meet(struct adding *a, int64_t id, int64_t asked)
{
	struct job_new *j = a->j;

	if (j->if_exists == EXISTS_ERROR)
		return false;
	j->id = id;
	j->run = 0;
	j->existed = true;
	j->replaced = j->if_exists == EXISTS_REPLACE && (!j->asked || asked != content_digest(j->uid, j->asked));
	a->replace = j->replaced ? id : 0;
	a->met = true;
	return true;
}

/* Refuses a name that a live job has. */
static bool check_name(struct store *s, struct adding *a, struct err *e)
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

		if (meet(a, id, query_get_int(&q)))
			return true;
		err_set(&a->err, ERR_CONFLICT, "the name '%s' is taken by job %lld; choose another, or end "
			"that one with 'jobctl rm %lld', or add with --if-exists", j->name, id, id);
		refuse(a, "name");
	}
	return !q.failed;
}

/* The row met something that is gone again. */
static bool explain_name(struct store *s, struct adding *a, struct err *e)
{
	if (!check_name(s, a, e))
		return false;
	if (a->j->existed)
		return true;
	if (!a->err.kind && a->j->name)
		err_set(&a->err, ERR_BUSY, "the name '%s' was taken a moment ago; try again", a->j->name);
	else if (!a->err.kind)
		err_set(&a->err, ERR_BUSY, "the job met another one on its way in; try again");
	return true;
}

static bool refuse_key(struct adding *a, int64_t id)
{
	err_set(&a->err, ERR_CONFLICT, "the key '%s' belongs to job %lld, which is another one; "
		"see 'jobctl show %lld'", a->j->key, (long long)id, (long long)id);
	return refuse(a, "key");
}

/* Why a row did not go in: its key is known, or its name is taken. An expired key is freed; then it is tried again. */
static bool explain(struct store *s, struct adding *a, struct err *e)
{
	bool expired = false;
	int64_t id = 0;

	if (a->j->key && !look_up_key(s, a, &id, &expired, e))
		return false;
	if (a->j->existed) {
		a->j->id = id;
		return !a->j->run_at || first_run(s, a->j, e);
	}
	if (id && !expired)
		return refuse_key(a, id);
	if (expired && !drop_key(s, id, e))
		return false;
	if (expired && !insert_rows(s, a, 1, e))
		return false;
	return a->inserted || explain_name(s, a, e);
}

static void describe_run(struct set *set, const struct job_new *j)
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

bool tags_insert(struct store *s, const struct job_new *j, struct err *e)
{
	AUTO_SET tags = {};

	describe_tags(&tags, j);
	return set_run(s, Q_TAGS_INSERT, &tags, e);
}

/* Those whose name is taken give that job their definition, once all that is new is complete. */
static bool replace_them(struct store *s, struct adding *a, size_t n, struct err *e)
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

static void describe_pause(struct set *set, const struct job_new *j)
{
	set_item(set);
	set_int(set, "job", j->id);
	set_int(set, "uid", j->uid);
	set_text(set, "owner", j->owner);
	set_int(set, "now", j->now);
}

static bool insert_pauses(struct store *s, struct set *set, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, Q_JOB_PAUSES_PUT, e);
	query_text(&q, set_json(set));
	query_int(&q, 0);
	return query_finish(&q);
}

static bool insert_rest(struct store *s, struct adding *a, size_t n, struct err *e)
{
	AUTO_SET runs = {};
	AUTO_SET tags = {};
	AUTO_SET due = {};
	AUTO_SET pauses = {};

	for (size_t i = 0; i < n; i++) {
		const struct job_new *j = a[i].j;

		if (!a[i].inserted)
			continue;
		count_change(s, COUNT_JOBS, j->paused ? JOB_PAUSED : JOB_ACTIVE, job_queue(j), 1);
		count_change(s, COUNT_OWNER, j->uid, "", 1);
		event_add(s, &(struct event_new){.at = j->now, .by = a[i].by, .what = EVENT_JOB_ADD, .object = j->name,
			.job = j->id, .owner = j->uid});
		describe_tags(&tags, j);
		if (j->paused)
			describe_pause(&pauses, j);
		if (j->run_at)
			describe_run(&runs, j);
		if (j->next_slot) {
			set_item(&due);
			set_int(&due, "job", j->id);
			set_int(&due, "segment", job_segment((uint64_t)j->id));
			set_int(&due, "slot", j->next_slot);
		}
	}
	return set_run(s, Q_TAGS_INSERT, &tags, e) && set_run(s, Q_DUE_INSERT, &due, e) && insert_pauses(s, &pauses, e) &&
	       runs_insert(s, &runs, NULL, e);
}

static bool number_them(struct store *s, struct adding *a, size_t n, struct err *e)
{
	int64_t ids[CHUNK_JOBS], runs[CHUNK_JOBS];
	size_t with_run = 0;

	for (size_t i = 0; i < n; i++)
		with_run += a[i].j->run_at != 0;
	if (!ids_take(s, Q_JOB_IDS, n, ids, e) || !ids_take(s, Q_RUN_IDS, with_run, runs, e))
		return false;
	for (size_t i = n; i-- > 0;) {
		a[i].j->id = ids[i];
		a[i].j->run = a[i].j->run_at ? runs[--with_run] : 0;
	}
	return true;
}

bool live_jobs(struct store *s, int64_t uid, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTER_GET, e);

	query_int(&q, COUNT_OWNER);
	query_int(&q, uid);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	*ret += count_pending(s, COUNT_OWNER, uid);
	return !q.failed;
}

/* Refuses those beyond their owner's limit, counting the ones before them in this chunk. */
static bool check_limits(struct store *s, struct adding *a, size_t n, struct err *e)
{
	int64_t uid = -1, live = 0;

	for (size_t i = 0; i < n; i++) {
		const struct job_new *j = a[i].j;

		if (!j->limit)
			continue;
		if (j->uid != uid) { /* usually one owner after the other */
			uid = j->uid;
			if (!live_jobs(s, j->uid, &live, e))
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

/* A submission that was taken once is not refused the second time: its queue may be gone since, its time over. */
static bool is_known(struct store *s, struct adding *a, bool *ret, struct err *e)
{
	bool expired = false;
	int64_t id = 0;

	if (a->j->key && !look_up_key(s, a, &id, &expired, e))
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
		if (!is_known(s, &a[i], &seen, e))
			return false;
		if (!seen)
			a[i].err = *a[i].j->late;
	}
	return true;
}

/* Refuses those whose queue nobody made. Jobs that come together are mostly for one queue. */
static bool check_queues(struct store *s, struct adding *a, size_t n, struct err *e)
{
	const char *known = NULL;
	bool seen;

	for (size_t i = 0; i < n; i++) {
		if (a[i].err.kind || !a[i].j->queue || (known && strcmp(known, a[i].j->queue) == 0))
			continue;
		if (!queue_check(s, a[i].j->queue, &a[i].err, e))
			return false;
		if (!a[i].err.kind) {
			known = a[i].j->queue;
			continue;
		}
		if (!is_known(s, &a[i], &seen, e))
			return false;
		if (seen)
			a[i].err = (struct err){};
	}
	return true;
}

/* ---- crowds ---- */

/* Jobs that come together often have the same slot. What is looked at is bounded, so that a batch is not slowed down. */
static bool count_crowds(struct store *s, struct adding *a, size_t n, struct err *e)
{
	struct {
		usec_t slot;
		int64_t jobs;
	} seen[CROWDS_MAX];
	size_t known = 0, k;

	for (size_t i = 0; i < n; i++) {
		struct job_new *j = a[i].j;

		if (!a[i].inserted || !j->crowd_max || !j->next_slot)
			continue;
		for (k = 0; k < known && seen[k].slot != j->next_slot; k++)
			;
		if (k == CROWDS_MAX)
			continue;
		if (k == known) {
			seen[known++].slot = j->next_slot;
			if (!crowd_join(s, j, &seen[k].jobs, e))
				return false;
		}
		j->crowd = seen[k].jobs;
	}
	return true;
}

/* ---- together ---- */

/* An owner who has as many jobs as allowed may still name one that is there. */
static bool spare_known(struct store *s, struct adding *a, struct err *e)
{
	struct err limit = a->err;

	if (a->err.kind != ERR_LIMIT || a->j->if_exists == EXISTS_ERROR)
		return true;
	a->err = (struct err){};
	if (!check_name(s, a, e))
		return false;
	if (!a->j->existed)
		a->err = limit;
	return true;
}

static bool add_chunk(struct store *s, struct adding *a, size_t n, struct err *e)
{
	if (!check_limits(s, a, n, e) || !check_late(s, a, n, e) || !check_queues(s, a, n, e) || !number_them(s, a, n, e) || !insert_rows(s, a, n, e))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!spare_known(s, &a[i], e) ||
		    (!a[i].err.kind && !a[i].inserted && !a[i].met && !explain(s, &a[i], e)))
			return false;
	return count_crowds(s, a, n, e) && insert_rest(s, a, n, e) && replace_them(s, a, n, e);
}

/* Chunks keep a statement's parameter small; 'stop' ends after the first chunk with a refusal. */
static bool add_all(struct store *s, struct adding *a, size_t n, bool stop, struct err *e)
{
	for (size_t from = 0, to; from < n; from = to) {
		size_t bytes = 0;
		bool refused = false;

		for (to = from; to < n && to - from < CHUNK_JOBS && (to == from || bytes < CHUNK_BYTES); to++)
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

static void forget(struct job_new *j)
{
	j->id = j->run = j->crowd = 0;
	j->existed = j->replaced = false;
}

static bool try_one(struct store *s, struct adding *a, struct err *e)
{
	bool expired = false;
	int64_t id = 0;

	if (!check_limits(s, a, 1, e) || !check_queues(s, a, 1, e) || !spare_known(s, a, e) ||
	    (a->j->key && !look_up_key(s, a, &id, &expired, e)))
		return false;
	if (a->err.kind)
		return true;
	if (a->j->existed && !a->met) {
		a->j->id = id;
		return !a->j->run_at || first_run(s, a->j, e);
	}
	if (id && !expired)
		return refuse_key(a, id);
	return check_name(s, a, e) && (!a->j->crowd_max || !a->j->next_slot ||
		crowd_count(s, a->j->next_slot, a->j->crowd_max, &a->j->crowd, e));
}

bool store_job_try(struct store *s, struct job_new *j, struct err *e)
{
	struct adding a = {.j = j};
	AUTO_TX tx = {};

	forget(j);
	if (!tx_begin(&tx, s, false, e) || !try_one(s, &a, e) || !tx_commit(&tx, e))
		return false;
	if (!a.err.kind)
		return true;
	forget(j);
	if (e)
		*e = a.err;
	return false;
}

bool apply_job_add(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	struct adding *a = xcalloc(n, sizeof(*a));
	bool ok;

	for (size_t i = 0; i < n; i++)
		a[i] = (struct adding){.j = &ops[i]->add, .by = &ops[i]->act.by};
	ok = add_all(s, a, n, false, e);
	for (size_t i = 0; ok && i < n; i++)
		if (a[i].err.kind) {
			ops[i]->ok = false;
			ops[i]->err = a[i].err;
			forget(a[i].j);
		}
	free(a);
	return ok;
}

static void refuse_bulk(struct op *op, const struct adding *a)
{
	for (size_t i = op->bulk.n; i-- > 0;) {
		if (a[i].err.kind) {
			op->ok = false;
			op->err = a[i].err;
			op->bulk.failed = i;
		}
	}
	for (size_t i = 0; !op->ok && i < op->bulk.n; i++)
		forget(&op->bulk.v[i]);
}

bool apply_job_bulk(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	const struct db_ops *db = s->db->ops;

	for (size_t k = 0; k < n; k++) {
		struct op *op = ops[k];
		struct adding *a = xcalloc(op->bulk.n ? op->bulk.n : 1, sizeof(*a));
		size_t mark = count_mark(s), events = event_mark(s);
		bool ok;

		for (size_t i = 0; i < op->bulk.n; i++)
			a[i] = (struct adding){.j = &op->bulk.v[i], .by = &op->act.by};
		ok = db->savepoint(s->db, e) && add_all(s, a, op->bulk.n, true, e);
		if (ok)
			refuse_bulk(op, a);
		free(a);
		if (!op->ok) {
			count_back_to(s, mark);
			event_back_to(s, events);
		}
		if (!ok || !(op->ok ? db->release : db->rollback_to)(s->db, e))
			return false;
	}
	return true;
}
