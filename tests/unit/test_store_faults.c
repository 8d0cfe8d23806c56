/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation with its n-th engine call failing: it is there whole, or not at all, and says which. */
#include "base/text.h"
#include "db_faulty.h"
#include "store_suite.h"
#include <stdio.h>
#include <string.h>

/* What the store holds, by names: numbers differ from try to try. */
static const char *const dump_queries[] = {
	"SELECT name, uid, key, state, reason, priority, updated_at, removed_at, spec FROM jobs ORDER BY name, id",
	"SELECT j.name, d.slot FROM due d JOIN jobs j ON j.id = d.job ORDER BY j.name",
	"SELECT j.name, t.key, t.value FROM job_tags t JOIN jobs j ON j.id = t.job ORDER BY j.name, t.key",
	"SELECT j.name, r.kind, r.slot, r.state, r.reason, r.due_at, r.attempt, r.lost, r.fence, r.cancel_asked, r.node,"
	" r.spawner, r.claimed_at, r.started_at, r.ended_at, r.exit_code, r.failures, r.first_start, r.dead_at FROM runs r LEFT JOIN jobs j ON j.id = r.job"
	" ORDER BY j.name, r.slot",
	"SELECT j.name, a.fence, a.number, a.node, a.outcome, a.ended_at, a.output_dropped FROM attempts a JOIN runs r ON r.id = a.run"
	" JOIN jobs j ON j.id = r.job ORDER BY j.name, a.fence",
	"SELECT j.name, v.revision, v.what, v.spec FROM job_revisions v JOIN jobs j ON j.id = v.job ORDER BY j.name, v.revision",
	"SELECT uid, name, revision, spec FROM templates ORDER BY uid, name",
	"SELECT j.name, p.by_uid, p.by_name, p.at, p.until FROM job_pauses p JOIN jobs j ON j.id = p.job ORDER BY j.name",
	"SELECT id, name, spawner, closed_at FROM nodes ORDER BY id",
	"SELECT name, holder, term FROM leases ORDER BY name",
	"SELECT segment, holder, term FROM segments ORDER BY segment",
	"SELECT name, draining, resign_term FROM node_orders ORDER BY name",
	"SELECT * FROM limits ORDER BY scope, key",
	"SELECT number, uid, name FROM owners ORDER BY number",
	"SELECT what, result, object, count(*) FROM events GROUP BY what, result, object ORDER BY what, result, object",
	"SELECT job, bad, since, last_success, typical FROM job_health ORDER BY job",
	"SELECT job, run, what, state, tries, due_at, done_at, node, error FROM notices ORDER BY job, what, created_at, id",
	"SELECT id, reader, holder, follow, taken FROM relays ORDER BY id",
	"SELECT relay, number, data FROM relay_parts ORDER BY relay, number",
	"SELECT what, state, queue, sum(n) FROM counters GROUP BY what, state, queue HAVING sum(n) <> 0"
	" ORDER BY what, state, queue",
};

static char *dump(const char *where)
{
	AUTO_DONE(buf) out = {};

	for (size_t i = 0; i < ELEMENTS(dump_queries); i++)
		place_query(where, dump_queries[i], &out);
	return buf_steal(&out);
}

/* Numbers in the world below, which is built in this order in an empty store. */
enum { QUEUED = 1, CLAIMED, RUNNING, DUE, ENDED, DEAD, PAUSED, WORLD_JOBS };
#define ENDED_RUN 4 /* the one before it has no run */

/* One notice is being sent, another waits. */
static void build_notices(struct store *s)
{
	for (int i = 0; i < 2; i++) {
		AUTO(op) *add = op_new(OP_NOTICE_ADD, NULL, NULL);
		AUTO(op) *take = op_new(OP_NOTICE_TAKE, NULL, NULL);

		add->notice_add = (struct op_notice_add){.uid = -1, .job = RUNNING, .kind = TELL_TEST, .now = T0 + i};
		assert_true(apply_one(s, add));
		take->notice_take = (struct op_notice_take){.node = NODE, .now = T0, .again_at = T0 + 1000, .limit = 1};
		assert_true(apply_one(s, take));
	}
}

/* One leads, one is dead. */
static void build_nodes(struct store *s)
{
	AUTO(op) *two = op_node_open("node-two", "two", "spawner-two");
	AUTO(op) *gone = op_node_open("node-gone", "gone", "spawner-gone");
	AUTO(op) *lease = op_new(OP_LEASE, NULL, NULL);

	gone->node_open.ttl = 1;
	assert_true(apply_one(s, gone));
	assert_true(apply_one(s, two));
	lease->lease = (struct op_lease){.node = "node-two", .name = "two", .ttl = USEC_HOUR, .at = T0, .stands = true};
	assert_true(apply_one(s, lease));
	assert_true(lease->lease.leads);
}

static struct op *make_relay(enum relay_verb verb, int64_t id, int64_t number)
{
	struct op *op = op_new(verb <= RELAY_PUT ? OP_RELAY_ADD : OP_RELAY, NULL, NULL);

	op->relay = (struct op_relay){.verb = verb, .id = id, .node = verb == RELAY_PUT ? NODE : "node-two", .ttl = USEC_HOUR,
		.ran_on = verb == RELAY_ASK ? xstrdup(NODE) : NULL, .run = RUNNING, .attempt = 1, .tail = -1};
	op->relay.part.number = number;
	return op;
}

/* One node reads what another has; a part waits. */
static void build_relay(struct store *s)
{
	AUTO(op) *ask = make_relay(RELAY_ASK, 1, 0), *put = make_relay(RELAY_PUT, 1, 1);

	assert_true(apply_one(s, ask) && apply_one(s, put));
	assert_false(ask->relay.gone || put->relay.gone);
}

static void build_world(struct store *s, const char *where)
{
	static const char *const names[] = {NULL, "queued", "claimed", "running", "due", "ended", "dead", "paused"};
	static const usec_t run_at[] = {0, T0 + 100, T0 + 1, T0, 0, T0 - 10, T0 - 20, 0};
	AUTO(op) *pause = op_new(OP_PAUSE, NULL, NULL);
	AUTO(op) *node = op_node_open(NODE, "one", SPAWNER);
	AUTO(run) *old = NULL, *dead = NULL;
	AUTO(op) *end = NULL, *failed = NULL;
	AUTO(op) *queue = op_new(OP_LIMIT_SET, NULL, NULL);
	AUTO(op) *template = NULL;

	place_clear(where);
	build_nodes(s);
	assert_true(apply_one(s, node));
	queue->limit = (struct op_limit){.scope = LIMIT_QUEUE, .key = "spare"};
	assert_true(apply_one(s, queue));
	for (int i = QUEUED; i < WORLD_JOBS; i++) {
		AUTO(op) *add = op_add(names[i], NULL, i == RUNNING ? "{\"notify\":[\"mail:ann\"]}" : NULL);

		add->add.run_at = run_at[i];
		add->add.next_slot = i == DUE ? T0 : i == PAUSED ? T0 + USEC_HOUR : 0;
		add->add.boots = i == DUE;
		add->add.policy.notifies = i == RUNNING;
		assert_true(apply_one(s, add));
		assert_int_equal(add->add.id, i);
	}
	dead = claim_one(s, T0 - 15);
	failed = op_ended(dead, ATTEMPT_FAILED, T0 - 14);
	failed->ended.dead = true;
	assert_true(apply_one(s, failed));
	old = claim_one(s, T0 - 5);
	end = op_ended(old, ATTEMPT_SUCCEEDED, T0 - 4);
	end->ended.attempt.output_bytes = 10;
	assert_true(apply_one(s, end));
	template = op_new(OP_TEMPLATE_PUT, NULL, NULL);
	template->template = (struct op_template){.uid = 5, .owner = "eve", .name = "there", .params = "{}", .spec = "{}", .now = T0};
	assert_true(apply_one(s, template));
	for (int i = 0; i < 2; i++) {
		AUTO(run) *r = claim_one(s, T0 + 2);

		if (r->job == RUNNING)
			start_run(s, r, T0 + 3);
	}
	build_notices(s);
	build_relay(s);
	pause->pause = (struct op_pause){.uid = -1, .job = PAUSED, .pause = {.by_uid = 1, .by_name = (char *)"ann", .at = T0 + 4,
		.until = T0 + 6}};
	assert_true(apply_one(s, pause));
}

static void plan_two(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)arg;
	while (ret->n < 2)
		planned_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot + (usec_t)ret->n,
			.due_at = due->slot});
	ret->next_slot = horizon + 1;
}

static size_t all_late(const struct late_job *late, usec_t now, void *arg)
{
	(void)now;
	(void)arg;
	return late->n;
}

static struct run run_of(int job)
{
	return (struct run){.id = job, .job = job, .fence = 1}; /* run numbers follow job numbers in this world */
}

static struct op *make_bulk(void)
{
	struct op *op = op_new(OP_JOB_BULK, NULL, NULL);

	op->bulk.n = 3;
	op->bulk.v = xcalloc(3, sizeof(*op->bulk.v));
	for (int i = 0; i < 3; i++)
		op->bulk.v[i] = (struct job_new){.uid = 5, .owner = "eve", .name = i == 0 ? "x" : i == 1 ? "y" : "z",
			.spec = "{}", .now = T0, .run_at = T0 + 1000};
	return op;
}

static struct op *make_notice(enum op_kind kind)
{
	struct op *op = op_new(kind, NULL, NULL);

	if (kind == OP_NOTICE_ADD)
		op->notice_add = (struct op_notice_add){.uid = -1, .job = RUNNING, .run = RUNNING, .kind = TELL_LONG, .now = T0};
	else if (kind == OP_NOTICE_TAKE)
		op->notice_take = (struct op_notice_take){.node = NODE, .now = T0 + 9, .again_at = T0 + 99, .limit = 5};
	else if (kind == OP_NOTICE_DONE)
		op->notice_done = (struct op_notice_done){.id = 1, .try = 1, .state = NOTICE_FAILED, .now = T0 + 9,
			.error = xstrdup("no")};
	else
		op->notice_resume = (struct op_notice_resume){.node = "node-new", .name = "one", .now = T0 + 9};
	return op;
}

static struct op *make_limit(enum op_kind kind)
{
	struct op *op = op_new(kind, NULL, NULL);

	op->limit = (struct op_limit){.scope = LIMIT_QUEUE, .key = kind == OP_LIMIT_RM ? "spare" : "new",
		.running_given = true, .running = 2, .rate_given = true, .rate = {.n = 1, .per = USEC_SEC, .burst = 1}};
	return op;
}

static struct op *make_control(enum op_kind kind)
{
	struct op *op = op_new(kind, NULL, NULL);

	switch (kind) {
	case OP_PAUSE:
		op->pause = (struct op_pause){.uid = -1, .job = DUE, .pause = {.by_uid = 1, .by_name = (char *)"ann", .reason = (char *)"why",
			.at = T0 + 9}};
		break;
	case OP_RESUME:
		op->resume = (struct op_resume){.uid = -1, .job = PAUSED, .now = T0 + 9};
		break;
	case OP_PAUSES_END:
		op->pauses_end.now = T0 + 9;
		break;
	case OP_TRIGGER:
		op->trigger = (struct op_trigger){.uid = -1, .job = QUEUED, .revision = 1, .now = T0 + 9};
		break;
	default:
		break;
	}
	return op;
}

/* What touches neither jobs nor runs. */
static struct op *make_other(enum op_kind kind)
{
	struct op *op = NULL;

	switch (kind) {
	case OP_NODE_OPEN:
		return op_node_open("node-new", "one", "spawner-new");
	case OP_NODE_ORDER:
		op = op_new(kind, NULL, NULL);
		op->node_order = (struct op_node_order){.name = "one", .order = NODE_DRAIN, .now = T0 + 9};
		break;
	case OP_LEASE:
		op = op_new(kind, NULL, NULL);
		op->lease = (struct op_lease){.node = "node-two", .name = "two", .ttl = USEC_HOUR, .at = T0, .resigns = true};
		break;
	case OP_LEAD:
		op = op_new(kind, NULL, NULL);
		op->lead = (struct op_lead){.node = "node-two", .term = 1, .now = T0 + 9};
		break;
	case OP_RELAY_ADD:
		return make_relay(RELAY_PUT, 1, 2);
	case OP_RELAY:
		return make_relay(RELAY_TAKE, 1, 0);
	case OP_NODE_CLOSE:
		op = op_new(kind, NULL, NULL);
		op->node_close = (struct op_node_close){.node = NODE, .now = T0 + 9};
		break;
	case OP_LIMIT_SET:
	case OP_LIMIT_RM:
		return make_limit(kind);
	case OP_OWNER:
		op = op_new(kind, NULL, NULL);
		op->owner = (struct op_owner){.uid = 4711, .name = "newcomer", .now = T0 + 9};
		break;
	case OP_EVENT:
		op = op_new(kind, NULL, NULL);
		op->act.what = EVENT_JOB_CANCEL;
		op->event = (struct op_event){.result = "denied", .now = T0 + 9};
		break;
	default:
		break;
	}
	return op;
}

static struct op *make(enum op_kind kind)
{
	static int64_t old_runs[] = {ENDED_RUN}, old_jobs[] = {ENDED};
	static const struct prune_list old = {old_runs, old_jobs, 1, 1};
	static const struct kept_output output = {.run = ENDED_RUN, .fence = 1, .attempt = 1, .bytes = 10};
	static char *tag = (char *)"team=b";
	static const struct strv tags = {&tag, 1};
	struct run claimed = run_of(CLAIMED), running = run_of(RUNNING);
	struct op *op = NULL;

	switch (kind) {
	case OP_JOB_ADD:
		op = op_add("new", "key", NULL);
		op->add.run_at = T0 + 1000;
		op->add.next_slot = T0 + 2000;
		break;
	case OP_JOB_BULK:
		return make_bulk();
	case OP_JOB_CANCEL:
	case OP_JOB_REMOVE:
		op = op_job_cancel(kind, kind == OP_JOB_CANCEL ? QUEUED : RUNNING);
		op->job_cancel.running = true;
		break;
	case OP_JOB_CHANGE:
		op = op_new(kind, NULL, NULL);
		op->change = (struct op_job_change){.uid = -1, .id = DUE, .expect = 1, .what = "changed", .reschedule = true,
			.to = {.name = "due", .spec = "{\"a\":1}", .tags = &tags, .now = T0 - 1, .next_slot = T0 + 7}};
		break;
	case OP_TEMPLATE_PUT:
	case OP_TEMPLATE_REMOVE:
		op = op_new(kind, NULL, NULL);
		op->template = (struct op_template){.uid = 5, .owner = "eve", .name = "there", .params = "{}", .spec = "{\"b\":1}",
			.now = T0};
		break;
	case OP_RUN_CANCEL:
		op = op_new(kind, NULL, NULL);
		op->run_cancel = (struct op_run_cancel){.uid = -1, .id = QUEUED, .now = T0 + 9};
		break;
	case OP_PAUSE:
	case OP_RESUME:
	case OP_PAUSES_END:
	case OP_TRIGGER:
		return make_control(kind);
	case OP_PLAN:
		op = op_new(kind, NULL, NULL);
		op->plan = (struct op_plan){.now = T0, .horizon = T0 + 5, .limit = 9, .fn = plan_two};
		break;
	case OP_LATE:
		op = op_new(kind, NULL, NULL);
		op->late = (struct op_late){.now = T0 + 200, .fn = all_late};
		break;
	case OP_BOOT:
		op = op_new(kind, NULL, NULL);
		op->boot = (struct op_boot){.name = "one", .boot = "b1", .now = T0 + 9};
		break;
	case OP_CLAIM:
		return op_claim(5, T0 + 200);
	case OP_STARTED:
		return op_started(&claimed, T0 + 9);
	case OP_ENDED:
		return op_ended(&running, ATTEMPT_SUCCEEDED, T0 + 9);
	case OP_GIVE_BACK:
		op = op_new(kind, NULL, NULL);
		op->give_back = (struct op_give_back){.node = NODE, .run = CLAIMED, .fence = 1, .due_at = T0 + 9, .now = T0 + 9};
		break;
	case OP_DEAD_RETRY:
	case OP_DEAD_PURGE:
		op = op_new(kind, NULL, NULL);
		op->dead = (struct op_dead){.uid = -1, .limit = 10, .now = T0 + 9};
		break;
	case OP_PRUNE:
		op = op_new(kind, NULL, NULL);
		op->prune = (struct op_prune){.list = &old, .events_before = T0};
		break;
	case OP_FORGET:
		op = op_new(kind, NULL, NULL);
		op->forget = (struct op_forget){&output, 1};
		break;
	case OP_NOTICE_ADD:
	case OP_NOTICE_TAKE:
	case OP_NOTICE_DONE:
	case OP_NOTICE_RESUME:
		return make_notice(kind);
	default:
		return make_other(kind);
	}
	return op;
}

struct trial {
	const char *where;
	struct store *s;
	struct fault *fault;
	char *before, *after; /* owned dumps */
};

/* Applies the operation with the fault armed; returns whether the fault was met. */
static bool try_once(struct trial *t, enum op_kind kind, enum fault_mode mode, int n)
{
	AUTO(op) *op = make(kind);
	AUTO_TEXT found = NULL;
	struct store_wake wake;
	struct err e = {};
	bool applied;

	*t->fault = (struct fault){.mode = mode, .calls_left = n};
	applied = store_apply(t->s, &op, 1, &wake, &e);
	t->fault->calls_left = 0;
	found = dump(t->where);
	if (applied && op->ok) {
		assert_string_equal(found, t->after);
	} else if (!applied && e.kind == ERR_UNCERTAIN) {
		assert_true(strcmp(found, t->before) == 0 || strcmp(found, t->after) == 0);
		assert_int_not_equal(mode, FAULT_LOST);
		assert_int_not_equal(mode, FAULT_COMMITTED);
	} else {
		assert_false(op->ok);
		assert_int_not_equal(op->err.kind, ERR_NONE);
		assert_string_equal(found, t->before);
	}
	if (mode == FAULT_LOST || mode == FAULT_COMMITTED)
		assert_true(applied && op->ok); /* a connection that comes back costs nobody anything */
	if (strcmp(found, t->before) != 0)
		build_world(t->s, t->where);
	return t->fault->fired;
}

static void try_kind(struct trial *t, enum op_kind kind, enum fault_mode mode)
{
	AUTO(op) *clean = make(kind);
	int n = 1;

	build_world(t->s, t->where);
	t->before = dump(t->where);
	if (!apply_one(t->s, clean))
		fail_msg("operation %d: %s", kind, clean->err.msg);
	t->after = dump(t->where);
	assert_string_not_equal(t->before, t->after);
	build_world(t->s, t->where);
	while (try_once(t, kind, mode, n))
		n++;
	assert_true(n > (mode == FAULT_COMMITTED ? 1 : 5)); /* it did meet some calls */
	free(STEAL(t->before));
	free(STEAL(t->after));
}

static void try_all(enum fault_mode mode, bool reconnects)
{
	AUTO_TEXT where = place_new();
	struct db_options o = {.where = where};
	struct fault fault = {};
	struct trial t = {.where = where, .fault = &fault};
	struct err e = {};

	if (!store_open_with(db_faulty_ops(fixture_ops, &fault, reconnects), &o, &t.s, &e))
		fail_msg("%s", e.msg);
	for (enum op_kind kind = 0; kind < OP_KIND_MAX; kind++)
		if (kind != OP_LOOK) /* it changes nothing */
			try_kind(&t, kind, mode);
	store_free(t.s);
	place_drop(where);
}

static void a_failing_statement_leaves_nothing_half_done(void **state)
{
	(void)state;
	try_all(FAULT_STATEMENT, fixture_ops->reconnects);
}

static void a_busy_store_leaves_nothing_half_done(void **state)
{
	(void)state;
	try_all(FAULT_BUSY, fixture_ops->reconnects);
}

static void a_full_store_leaves_nothing_half_done(void **state)
{
	(void)state;
	try_all(FAULT_FULL, fixture_ops->reconnects);
}

static void a_failing_device_leaves_nothing_half_done(void **state)
{
	(void)state;
	try_all(FAULT_DEVICE, false);
}

static void a_lost_connection_is_made_again_and_nothing_is_done_twice(void **state)
{
	(void)state;
	try_all(FAULT_LOST, true);
}

static void a_commit_that_nobody_confirmed_is_found_by_its_witness(void **state)
{
	(void)state;
	try_all(FAULT_COMMITTED, true);
}

/* ---- many kinds in one batch: what says ok is there, the rest is not ---- */

#define WHOLE 9
static const enum op_kind whole[WHOLE] = {OP_JOB_ADD, OP_STARTED, OP_ENDED, OP_JOB_CANCEL, OP_PLAN, OP_JOB_BULK,
	OP_RUN_CANCEL, OP_CLAIM, OP_NODE_CLOSE};

static void try_whole(struct store *s, const char *where, struct fault *fault, struct fault armed)
{
	struct op *ops[WHOLE], *good[WHOLE];
	AUTO_TEXT faulted = NULL;
	AUTO_TEXT wanted = NULL;
	struct err e = {};
	size_t ok = 0;

	build_world(s, where);
	for (int i = 0; i < WHOLE; i++)
		ops[i] = make(whole[i]);
	*fault = armed;
	if (store_apply(s, ops, WHOLE, &(struct store_wake){}, &e))
		for (int i = 0; i < WHOLE; i++)
			if (ops[i]->ok)
				good[ok++] = make(whole[i]);
	fault->calls_left = 0;
	faulted = dump(where);
	build_world(s, where);
	apply_all(s, good, ok);
	wanted = dump(where);
	assert_string_equal(faulted, wanted);
	for (size_t i = 0; i < ok; i++)
		op_free(good[i]);
	for (int i = 0; i < WHOLE; i++)
		op_free(ops[i]);
}

static void a_batch_with_a_failing_statement_keeps_its_good_members(void **state)
{
	AUTO_TEXT where = place_new();
	struct db_options o = {.where = where};
	struct fault fault = {};
	struct store *s = NULL;
	struct err e = {};

	(void)state;
	assert_true(store_open_with(db_faulty_ops(fixture_ops, &fault, fixture_ops->reconnects), &o, &s, &e));
	for (int n = 1; n == 1 || fault.fired; n += 1 + n / 8)
		try_whole(s, where, &fault, (struct fault){.mode = FAULT_STATEMENT, .calls_left = n});
	for (int query = 0; query < Q_MAX; query++)
		try_whole(s, where, &fault, (struct fault){.mode = FAULT_QUERY, .query = query, .calls_left = 1});
	store_free(s);
	place_drop(where);
}

/* Whoever did it keeps what it did, and tries again: an end that is taken for refused would be forgotten. */
static void a_connection_that_is_lost_each_time_means_that_nothing_happened(void **state)
{
	static const enum op_kind kinds[] = {OP_ENDED, OP_GIVE_BACK, OP_JOB_ADD};
	AUTO_TEXT where = place_new();
	struct db_options o = {.where = where};
	struct fault fault = {};
	struct store *s = NULL;
	struct err e = {};

	(void)state;
	assert_true(store_open_with(db_faulty_ops(fixture_ops, &fault, true), &o, &s, &e));
	build_world(s, where);
	for (size_t i = 0; i < ELEMENTS(kinds); i++) {
		AUTO_TEXT before = dump(where);
		AUTO_TEXT after = NULL;
		AUTO(op) *op = make(kinds[i]);

		fault = (struct fault){.mode = FAULT_CUT, .query = Q_DUE_FIRST, .calls_left = 1};
		assert_false(store_apply(s, &op, 1, &(struct store_wake){}, &e));
		assert_true(fault.fired);
		assert_int_equal(e.kind, ERR_BUSY);
		assert_int_equal(op->err.kind, ERR_BUSY);
		fault.calls_left = 0;
		after = dump(where);
		assert_string_equal(before, after);
		assert_true(apply_one(s, op));
	}
	store_free(s);
	place_drop(where);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_failing_statement_leaves_nothing_half_done),
	cmocka_unit_test(a_busy_store_leaves_nothing_half_done),
	cmocka_unit_test(a_full_store_leaves_nothing_half_done),
	cmocka_unit_test(a_failing_device_leaves_nothing_half_done),
	cmocka_unit_test(a_lost_connection_is_made_again_and_nothing_is_done_twice),
	cmocka_unit_test(a_commit_that_nobody_confirmed_is_found_by_its_witness),
	cmocka_unit_test(a_batch_with_a_failing_statement_keeps_its_good_members),
	cmocka_unit_test(a_connection_that_is_lost_each_time_means_that_nothing_happened),
};
const struct suite_part store_faults_part = {tests, ELEMENTS(tests)};
