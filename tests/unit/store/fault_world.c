/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and dumps a small store with rows of every kind, and an operation of each kind. */
#include "base/text.h"
#include "store/limit.h"
#include "store/ops/event_op.h"
#include "store/ops/job/job_apply.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/job/templates.h"
#include "store/ops/limits.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/node_commands.h"
#include "store/ops/node/nodes.h"
#include "store/ops/node/output_relays.h"
#include "store/ops/notices.h"
#include "store/ops/notices_due.h"
#include "store/ops/op.h"
#include "store/ops/op_private.h"
#include "store/ops/owners.h"
#include "store/ops/retention.h"
#include "store/ops/run/boot_runs.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/dead_letters.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/late_runs.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/run_cancel.h"
#include "store/ops/run/run_progress.h"
#include "store/ops/run/run_states.h"
#include "store/ops/run/runs.h"
#include "store/ops/run/triggers.h"
#include "store/ops/tokens.h"
#include "store/read/prune_candidates.h"
#include "store/row_ids.h"
#include "store/token_row.h"
#include "unit/store/fault_world.h"
#include <string.h>

/* The rows of the store by name, because ids differ between tries. */
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
	"SELECT job, scope, key, uid, at, until FROM pauses_past ORDER BY job, scope, key, uid, at",
	"SELECT id, name, spawner, closed_at, left_runs FROM nodes ORDER BY id",
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
	"SELECT id, name, owner FROM tokens ORDER BY id",
	"SELECT run, fence, percent, text, at FROM run_progress ORDER BY run",
	"SELECT run, fence, part, last, uid, data FROM run_states ORDER BY run, fence, part",
	"SELECT j.name, c.link, c.parent, c.mode FROM chains c JOIN jobs j ON j.id = c.child ORDER BY j.name, c.link",
	"SELECT what, state, queue, sum(n) FROM counters GROUP BY what, state, queue HAVING sum(n) <> 0"
	" ORDER BY what, state, queue",
};

char *world_dump(const char *where)
{
	AUTO_DONE(buf) out = {};

	place_queries(where, dump_queries, ELEMENTS(dump_queries), &out);
	return buf_steal(&out);
}

/* Numbers in the world below, which is built in this order in an empty store. */
enum { QUEUED = 1, CLAIMED, RUNNING, DUE, ENDED, DEAD, PAUSED, WORLD_JOBS };
#define ENDED_RUN 4 /* the job before it has no run */

/* One notice is being sent, another waits. */
static void build_notices(struct store *s)
{
	for (int i = 0; i < 2; i++) {
		AUTO(op) *add = op_new(OP_NOTICE_ADD, NULL, NULL);
		AUTO(op) *take = op_new(OP_NOTICE_TAKE, NULL, NULL);

		op_fill(notice_add_op(add), .uid = -1, .job = RUNNING, .kind = NOTICE_KIND_TEST, .now = T0 + i);
		assert_true(apply_one(s, add));
		op_fill(notices_due_op(take), .node = NODE, .now = T0, .again_at = T0 + 1000, .limit = 1);
		assert_true(apply_one(s, take));
	}
}

static void build_token(struct store *s)
{
	static const struct token_row row = {.id = (char *)"t1", .name = (char *)"there", .owner = 1000,
		.owner_name = (char *)"ann", .created_by = (char *)"ann", .hash = (char *)"hash", .role = TOKEN_VIEWER,
		.scope = (char *)"see", .created_at = T0};
	AUTO(op) *add = op_new(OP_TOKEN_ADD, NULL, NULL);

	op_fill(token_add_op(add), .row = &row);
	assert_true(apply_one(s, add));
}

/* One leads, one is dead. */
static void build_nodes(struct store *s)
{
	AUTO(op) *two = op_node_open("node-two", "two", "spawner-two");
	AUTO(op) *gone = op_node_open("node-gone", "gone", "spawner-gone");
	AUTO(op) *lease = op_new(OP_LEASE, NULL, NULL);

	node_open_op(gone)->ttl = 1;
	assert_true(apply_one(s, gone));
	assert_true(apply_one(s, two));
	op_fill(lease_op(lease), .node = "node-two", .name = "two", .ttl = USEC_HOUR, .at = T0, .stands = true);
	assert_true(apply_one(s, lease));
	assert_true(lease_op(lease)->leads);
}

static struct op *op_relay(enum relay_verb verb, int64_t id, int64_t number)
{
	struct op *op = op_new(verb <= RELAY_PUT ? OP_RELAY_ADD : OP_RELAY, NULL, NULL);

	op_fill(output_relay_op(op), .verb = verb, .id = id, .node = verb == RELAY_PUT ? NODE : "node-two", .ttl = USEC_HOUR,
		.ran_on = verb == RELAY_ASK ? xstrdup(NODE) : NULL, .run = RUNNING, .attempt = 1, .tail = -1);
	output_relay_op(op)->part.number = number;
	return op;
}

/* One node reads what another has; a part waits. */
static void build_relay(struct store *s)
{
	AUTO(op) *ask = op_relay(RELAY_ASK, 1, 0), *put = op_relay(RELAY_PUT, 1, 1);

	assert_true(apply_one(s, ask) && apply_one(s, put));
	assert_false(output_relay_op(ask)->gone || output_relay_op(put)->gone);
}

static struct op *op_state(int64_t run)
{
	struct op *op = op_new(OP_STATE_PUT, NULL, NULL);

	op_fill(run_states_put_op(op), .node = NODE, .run = run, .fence = 1, .last = true, .total = 4, .data = xstrdup("AAAA"),
		.owner = xstrdup("ann"));
	return op;
}

void world_build(struct store *s, const char *where)
{
	static const char *const names[] = {NULL, "queued", "claimed", "running", "due", "ended", "dead", "paused"};
	static const usec_t run_at[] = {0, T0 + 100, T0 + 1, T0, 0, T0 - 10, T0 - 20, 0};
	AUTO(op) *pause = op_new(OP_PAUSE, NULL, NULL);
	AUTO(op) *node = op_node_open(NODE, "one", SPAWNER);
	AUTO(run) *old = NULL, *dead = NULL;
	AUTO(op) *end = NULL, *failed = NULL, *stored = NULL;
	AUTO(op) *queue = op_new(OP_LIMIT_SET, NULL, NULL);
	AUTO(op) *template = NULL;

	place_clear(where);
	row_ids_forget(s); /* the numbers begin again */
	build_nodes(s);
	assert_true(apply_one(s, node));
	op_fill(limit_op(queue), .scope = LIMIT_QUEUE, .key = "spare");
	assert_true(apply_one(s, queue));
	for (int i = QUEUED; i < WORLD_JOBS; i++) {
		AUTO(op) *add = op_add(names[i], NULL, i == RUNNING ? "{\"notify\":[\"mail:ann\"]}" : NULL);

		job_add_op(add)->job.run_at = run_at[i];
		job_add_op(add)->job.next_slot = i == DUE ? T0 : i == PAUSED ? T0 + USEC_HOUR : 0;
		job_add_op(add)->job.boots = i == DUE;
		job_add_op(add)->job.policy.notifies = i == RUNNING;
		job_add_op(add)->job.policy.deadline = i == QUEUED ? USEC_MIN : 0;
		assert_true(apply_one(s, add));
		assert_int_equal(job_add_op(add)->job.id, i);
	}
	dead = claim_one(s, T0 - 15);
	failed = op_ended(dead, ATTEMPT_FAILED, T0 - 14);
	run_ended_op(failed)->dead = true;
	assert_true(apply_one(s, failed));
	old = claim_one(s, T0 - 5);
	stored = op_state(old->id);
	assert_true(apply_one(s, stored));
	end = op_ended(old, ATTEMPT_SUCCEEDED, T0 - 4);
	run_ended_op(end)->attempt.output_bytes = 10;
	assert_true(apply_one(s, end));
	template = op_new(OP_TEMPLATE_PUT, NULL, NULL);
	op_fill(template_op(template), .uid = 5, .owner = "eve", .name = "there", .params = "{}", .spec = "{}", .now = T0);
	assert_true(apply_one(s, template));
	for (int i = 0; i < 2; i++) {
		AUTO(run) *r = claim_one(s, T0 + 2);

		if (r->job == RUNNING)
			start_run(s, r, T0 + 3);
	}
	build_notices(s);
	build_relay(s);
	build_token(s);
	op_fill(pause_op(pause), .uid = -1, .job = PAUSED, .pause = {.by_uid = 1, .by_name = (char *)"ann", .at = T0 + 4,
		.until = T0 + 6});
	assert_true(apply_one(s, pause));
}

static void plan_two(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)arg;
	while (ret->n < 2)
		plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot + (usec_t)ret->n,
			.due_at = due->slot});
	ret->next_slot = horizon + 1;
}

static size_t all_late(const struct late_job *late, usec_t now, bool *ret_caught_up, void *arg)
{
	(void)now;
	(void)ret_caught_up;
	(void)arg;
	return late->n;
}

/* ---- an operation of each kind ---- */

static struct op *make_bulk(void)
{
	static const char *const names[] = {"x", "y", "z"};
	struct op *op = op_new(OP_JOB_BULK, NULL, NULL);

	job_bulk_op(op)->n = ELEMENTS(names);
	job_bulk_op(op)->v = xcalloc(ELEMENTS(names), sizeof(*job_bulk_op(op)->v));
	for (size_t i = 0; i < ELEMENTS(names); i++)
		job_bulk_op(op)->v[i] = (struct job_new){.uid = 5, .owner = "eve", .name = names[i], .spec = "{}", .now = T0,
			.run_at = T0 + 1000};
	return op;
}

/* Adds, changes and removes one job each. */
static struct op *make_apply(void)
{
	static struct op_job_change change; /* borrowed by the operation */
	struct op *op = op_new(OP_JOB_APPLY, NULL, NULL);
	struct op_job_apply *a = job_apply_op(op);

	op_fill(a, .scope = -1, .set = "set", .now = T0, .n_add = 1, .n_change = 1, .n_remove = 1);
	a->add = xcalloc(1, sizeof(*a->add));
	a->add[0] = (struct job_new){.uid = 5, .owner = "eve", .name = "x", .spec = "{}", .now = T0, .run_at = T0 + 1000};
	change = (struct op_job_change){.uid = -1, .id = DUE, .expect = 1, .what = "changed",
		.to = {.name = "due", .spec = "{\"a\":1}", .now = T0}};
	a->change = xcalloc(1, sizeof(struct op_job_change *));
	a->change[0] = &change;
	a->remove = xcalloc(1, sizeof(*a->remove));
	a->remove[0] = QUEUED;
	return op;
}

static struct op *make_ended(void)
{
	return op_ended(&(struct run){.id = RUNNING, .job = RUNNING, .fence = 1}, ATTEMPT_SUCCEEDED, T0 + 9);
}

static struct op *make_progress(void)
{
	struct op *op = op_new(OP_PROGRESS, NULL, NULL);

	run_progress_op(op)->n = 1;
	run_progress_op(op)->v = xcalloc(1, sizeof(*run_progress_op(op)->v));
	run_progress_op(op)->v[0] = (struct run_progress_row){.run = RUNNING, .fence = 1, .event = true,
		.progress = {.percent = 40, .text = "half", .at = T0 + 9}};
	return op;
}

static struct op *make_state_put(void)
{
	return op_state(RUNNING);
}

static struct op *make_notice_done(void)
{
	struct op *op = op_new(OP_NOTICE_DONE, NULL, NULL);

	op_fill(notice_done_op(op), .id = 1, .try = 1, .state = NOTICE_FAILED, .now = T0 + 9, .error = xstrdup("no"));
	return op;
}

static struct op *make_relay_put(void)
{
	return op_relay(RELAY_PUT, 1, 2);
}

static struct op *make_relay_take(void)
{
	return op_relay(RELAY_TAKE, 1, 0);
}

/* Operations that own memory. */
static struct op *(*const makers[OP_KIND_MAX])(void) = {
	[OP_JOB_BULK] = make_bulk,
	[OP_JOB_APPLY] = make_apply,
	[OP_ENDED] = make_ended,
	[OP_PROGRESS] = make_progress,
	[OP_STATE_PUT] = make_state_put,
	[OP_NOTICE_DONE] = make_notice_done,
	[OP_RELAY_ADD] = make_relay_put,
	[OP_RELAY] = make_relay_take,
};

static int64_t old_runs[] = {ENDED_RUN}, old_jobs[] = {ENDED};
static const struct prune_candidates old = {old_runs, old_jobs, 1, 1};
static const struct kept_output output = {.run = ENDED_RUN, .fence = 1, .attempt = 1, .bytes = 10};
static char *tag = (char *)"team=b";
static const struct strv tags = {&tag, 1};
static const struct token_row new_token = {.id = (char *)"t2", .name = (char *)"new", .owner = 1000, .owner_name = (char *)"ann",
	.created_by = (char *)"ann", .hash = (char *)"hash", .role = TOKEN_VIEWER, .scope = (char *)"see", .created_at = T0};
#define TEMPLATE .uid = 5, .owner = "eve", .name = "there", .params = "{}", .spec = "{\"b\":1}", .now = T0
#define PLAIN(type, ...) &(const struct op_##type){__VA_ARGS__}.op

/* Run ids follow the job ids above, and every fence is 1. */
static const struct op *const plain[OP_KIND_MAX] = {
	[OP_JOB_ADD] = PLAIN(job_add, .job = {.uid = 1000, .owner = "ann", .name = "new", .key = "key", .spec = "{\"command\":[\"true\"]}",
		.now = T0, .run_at = T0 + 1000, .next_slot = T0 + 2000}),
	[OP_JOB_CANCEL] = PLAIN(job_cancel, .uid = -1, .id = QUEUED, .running = true, .now = T0 + 5),
	[OP_JOB_REMOVE] = PLAIN(job_cancel, .uid = -1, .id = RUNNING, .running = true, .now = T0 + 5),
	[OP_JOB_CHANGE] = PLAIN(job_change, .uid = -1, .id = DUE, .expect = 1, .what = "changed", .reschedule = true,
		.to = {.name = "due", .spec = "{\"a\":1}", .tags = &tags, .now = T0 - 1, .next_slot = T0 + 7}),
	[OP_TEMPLATE_PUT] = PLAIN(template, TEMPLATE),
	[OP_TEMPLATE_REMOVE] = PLAIN(template, TEMPLATE),
	[OP_RUN_CANCEL] = PLAIN(run_cancel, .uid = -1, .id = QUEUED, .now = T0 + 9),
	[OP_PAUSE] = PLAIN(pause, .uid = -1, .job = DUE, .pause = {.by_uid = 1, .by_name = (char *)"ann", .reason = (char *)"why",
		.at = T0 + 9}),
	[OP_RESUME] = PLAIN(resume, .uid = -1, .job = PAUSED, .now = T0 + 9),
	[OP_PAUSES_END] = PLAIN(pauses_end, .now = T0 + 9),
	[OP_EXPIRE] = PLAIN(expire, .now = T0 + USEC_HOUR),
	[OP_TRIGGER] = PLAIN(trigger, .uid = -1, .job = QUEUED, .revision = 1, .now = T0 + 9),
	[OP_PLAN] = PLAIN(plan, .now = T0, .horizon = T0 + 5, .limit = 9, .fn = plan_two),
	[OP_LATE] = PLAIN(late, .now = T0 + 200, .fn = all_late),
	[OP_BOOT] = PLAIN(boot, .name = "one", .boot = "b1", .now = T0 + 9),
	[OP_CLAIM] = PLAIN(claim, .node = NODE, .now = T0 + 200, .room = 5),
	[OP_STARTED] = PLAIN(started, .node = NODE, .spawner = SPAWNER, .run = CLAIMED, .fence = 1, .attempt = 1, .pid = 4711,
		.started_at = T0 + 9),
	[OP_GIVE_BACK] = PLAIN(give_back, .node = NODE, .run = CLAIMED, .fence = 1, .due_at = T0 + 9, .now = T0 + 9),
	[OP_DEAD_RETRY] = PLAIN(dead, .uid = -1, .limit = 10, .now = T0 + 9),
	[OP_DEAD_PURGE] = PLAIN(dead, .uid = -1, .limit = 10, .now = T0 + 9),
	[OP_NODE_OPEN] = PLAIN(node_open, .node = "node-new", .name = "one", .spawner = "spawner-new", .host = "here", .now = T0),
	[OP_NODE_CLOSE] = PLAIN(node_close, .node = NODE, .now = T0 + 9),
	[OP_NODE_COMMAND] = PLAIN(node_command, .name = "one", .order = NODE_DRAIN, .now = T0 + 9),
	[OP_LEASE] = PLAIN(lease, .node = "node-two", .name = "two", .ttl = USEC_HOUR, .at = T0, .resigns = true),
	[OP_LEAD] = PLAIN(lead, .node = "node-two", .term = 1, .now = T0 + 9),
	[OP_STATE_DROP] = PLAIN(state_drop, .run = ENDED_RUN),
	[OP_PRUNE] = PLAIN(prune, .list = &old, .events_before = T0),
	[OP_FORGET] = PLAIN(forget, .v = &output, .n = 1),
	[OP_EVENT] = PLAIN(event, .op.act.what = EVENT_JOB_CANCEL, .result = "denied", .now = T0 + 9),
	[OP_LIMIT_SET] = PLAIN(limit, .scope = LIMIT_QUEUE, .key = "new", .running_given = true, .running = 2, .rate_given = true,
		.rate = {.n = 1, .per = USEC_SEC, .burst = 1}),
	[OP_LIMIT_RM] = PLAIN(limit, .scope = LIMIT_QUEUE, .key = "spare"),
	[OP_TOKEN_ADD] = PLAIN(token_add, .row = &new_token),
	[OP_TOKEN_REMOVE] = PLAIN(token_remove, .ref = "there", .owner = 1000, .now = T0 + 9),
	[OP_OWNER] = PLAIN(owner, .uid = 4711, .name = "newcomer", .now = T0 + 9),
	[OP_NOTICE_ADD] = PLAIN(notice_add, .uid = -1, .job = RUNNING, .run = RUNNING, .kind = NOTICE_KIND_LONG, .now = T0),
	[OP_NOTICE_TAKE] = PLAIN(notice_take, .node = NODE, .now = T0 + 9, .again_at = T0 + 99, .limit = 5),
	[OP_NOTICE_RESUME] = PLAIN(notice_resume, .node = "node-new", .name = "one", .now = T0 + 9),
};

struct op *world_op(enum op_kind kind)
{
	struct op *op;
	struct actor by;

	if (makers[kind])
		return makers[kind]();
	op = op_new(kind, NULL, NULL);
	by = op->act.by;
	memcpy(op, plain[kind], op_info(op)->size);
	op->kind = kind;
	op->act.by = by;
	return op;
}
