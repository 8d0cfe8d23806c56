/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases on a fake clock: a week of three nodes, and some hours of fifty. Nodes with drifting clocks and wrong times of day
 * share one store. They pause, crash, lose requests and answers, and are upgraded one after another. No two nodes lead at
 * one time or in one term, another node takes over within a lease, and no node is closed before its spawner has killed
 * its runs. judge_leases.py, which shares no code with the product, checks the journal of the same events.
 *
 * usage: SEED=n sim_leases                         TAP
 *        NODES=50 DAYS=30 SEED=n [KEEP=1] sim_leases   one world of this size; KEEP keeps the journal
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/store_thread.h"
#include "sim/leases.h"
#include "store/ops/batch.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "store/store.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const fault_names[FAULT_MAX] = {"none", "pause", "crash", "partition", "lossy", "upgrade"};

static uint64_t draw(struct world *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return below ? w->random % below : 0;
}

/* ---- clocks ---- */

static usec_t world_boottime(void *arg)
{
	return ((struct world *)arg)->now;
}

static usec_t world_realtime(void *arg)
{
	return EPOCH + ((struct world *)arg)->now;
}

static usec_t node_time(const struct node *n, usec_t world_time)
{
	usec_t elapsed = world_time - BEGIN;

	return n->origin + elapsed + elapsed / 1000000 * n->drift;
}

/* The first world time at which the node's clock shows at least 'at'. */
usec_t world_time(const struct node *n, usec_t at)
{
	usec_t t = BEGIN + (at - n->origin) - (at - n->origin) / (1000000 + n->drift) * n->drift;

	while (node_time(n, t) < at)
		t += 1 + (at - node_time(n, t));
	return t;
}

static usec_t node_boottime(void *arg)
{
	const struct node *n = arg;

	return node_time(n, n->world->now);
}

static usec_t node_realtime(void *arg)
{
	return EPOCH + node_boottime(arg) + ((const struct node *)arg)->skew;
}

/* ---- the store threads of the nodes ---- */

static void request_insert(struct world *w, struct request *r)
{
	struct request **at = &w->requests;

	while (*at && (*at)->at <= r->at)
		at = &(*at)->next;
	r->next = *at;
	*at = r;
}

void store_thread_submit(struct store_thread *t, struct op *op)
{
	struct world *w = t->node->world;
	struct request *r = xcalloc(1, sizeof(*r));
	const struct node *n = t->node;
	uint64_t loss = n->fault == FAULT_LOSSY ? 3 : 1000; /* one in so many */

	r->link = t;
	r->op = op;
	r->drops_request = n->fault == FAULT_PARTITION || draw(w, loss) == 0;
	r->drops_answer = draw(w, loss) == 0;
	r->at = w->now + 1 + (usec_t)draw(w, TRIP_MAX);
	if (r->at <= t->last_arrival)
		r->at = t->last_arrival + 1;
	t->last_arrival = r->at;
	t->references++;
	request_insert(w, r);
}

const char *store_thread_store_id(const struct store_thread *t)
{
	return store_id(t->store);
}

void store_thread_expect_term(struct store_thread *t, int64_t term)
{
	store_expect_term(t->store, term);
}

static void link_release(struct store_thread *t)
{
	if (--t->references > 0)
		return;
	store_free(t->store);
	free(t);
}

static struct store_thread *link_new(struct node *n)
{
	struct store_thread *t = xcalloc(1, sizeof(*t));
	struct err e = {};

	t->node = n;
	t->references = 1;
	if (!store_open(&(struct store_options){.where = n->world->path, .clock = &n->world->clock}, &t->store, &e)) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	return t;
}

/* ---- the daemon around the leases ---- */

static void node_open(struct node *n);

static void on_change(void *arg)
{
	(void)arg;
}

static usec_t jitter(usec_t max, void *arg)
{
	return (usec_t)draw(((struct node *)arg)->world, (uint64_t)max);
}

static void on_lost(struct claimed *c, void *arg)
{
	(void)c;
	(void)arg;
}

static void on_to_end(const struct run_change *r, void *arg)
{
	(void)r;
	(void)arg;
}

static void on_given_up(void *arg)
{
	struct node *n = arg;

	n->given_up++;
	journal(n->world, "again", n, " %s", n->id);
	n->end_at = n->kill_at = 0; /* the daemon has the spawner end the runs before the node is opened again */
	node_open(n);
}

static void on_deadline(usec_t end_at, usec_t kill_at, void *arg)
{
	struct node *n = arg;

	n->end_at = end_at;
	n->kill_at = kill_at;
	journal(n->world, "kill", n, " %s %" PRId64, n->id, kill_at ? world_time(n, kill_at) - BEGIN : 0);
}

static void on_exit_asked(int status, void *arg)
{
	struct node *n = arg;

	fault_found(n->world, "node %s was told to exit with status %d", n->name, status);
}

static void on_opened(struct op *op, void *arg)
{
	struct node *n = arg;

	if (op->ok)
		cluster_opened(n->cluster, node_open_op(op)->others);
	else
		node_open(n); /* the answer was lost: ask again */
	op_free(op);
}

static void node_open(struct node *n)
{
	struct op *op = op_new(OP_NODE_OPEN, on_opened, n);

	op_fill(node_open_op(op), .node = n->id, .name = n->name, .spawner = n->name, .host = "host", .ttl = TTL, .run_ttl = RUN_TTL,
		.now = node_realtime(n));
	store_thread_submit(n->link, op);
}

static void node_start(struct node *n)
{
	struct world *w = n->world;
	struct err e = {};

	if (w->n_ids >= IDS_MAX)
		abort();
	w->ids[w->n_ids] = xprintf("%s-%d", n->name, w->n_ids);
	n->id = w->ids[w->n_ids++];
	n->end_at = n->kill_at = 0; /* the deadline of the previous incarnation does not concern the new row */
	n->link = link_new(n);
	if (!cluster_new(NULL, &(struct cluster_options){.clock = &n->clock, .jitter = jitter, .store = n->link, .leases = n->link, .node_id = n->id,
			.node_name = n->name, .ttl = TTL, .run_ttl = RUN_TTL, .on_change = on_change, .on_lost = on_lost,
			.on_to_end = on_to_end, .on_looked = on_change, .on_given_up = on_given_up, .on_peers = on_change,
			.on_deadline = on_deadline, .on_exit = on_exit_asked, .arg = n}, &n->cluster, &e))
		abort();
	node_open(n);
}

static void node_crash(struct node *n)
{
	cluster_free(STEAL(n->cluster));
	n->link->closed = true;
	link_release(STEAL(n->link));
}

/* An orderly departure without runs, as an upgrade of the daemon does it. The answer is not waited for. */
static void node_leave(struct node *n)
{
	struct op *op = op_new(OP_NODE_CLOSE, NULL, NULL);

	op_fill(node_close_op(op), .node = n->id, .now = node_realtime(n));
	node_close_op(op)->guarded = cluster_leave(n->cluster, &node_close_op(op)->run_ttl);
	journal(n->world, "leave", n, " %s", n->id);
	store_thread_submit(n->link, op);
}

/* ---- requests ---- */

static void request_apply(struct world *w, struct request *r)
{
	struct batch_wake wake = {};
	struct err e = {};

	r->applied = true;
	r->at = w->now + 1 + (usec_t)draw(w, TRIP_MAX);
	if (r->drops_request || r->drops_answer)
		r->at = w->now + TIMEOUT;
	if (r->at <= r->link->last_answer)
		r->at = r->link->last_answer + 1;
	r->link->last_answer = r->at;
	if (r->drops_request)
		return;
	if (!batch_apply(r->link->store, &r->op, 1, &wake, &e))
		fault_found(w, "the store failed: %s", e.msg);
	if (r->op->kind == OP_LEASE && r->op->ok) {
		check_term(w, r->link->node, lease_op(r->op));
		journal(w, "grant", r->link->node, " %s %" PRId64 " %d", lease_op(r->op)->node, lease_op(r->op)->term, lease_op(r->op)->leads);
	}
	if (r->op->kind == OP_LEAD && r->op->ok && (leader_op(r->op)->dead > 0 || leader_op(r->op)->moved > 0))
		journal_members(w, r->link->store);
	if (r->op->kind == OP_LEAD && r->op->ok && leader_op(r->op)->dead > 0) {
		w->reaped += (int)leader_op(r->op)->dead;
		check_reaped(w, r->link->store);
	}
}

static void request_answer(struct request *r)
{
	struct op *op = r->op;

	if (r->drops_request || r->drops_answer) {
		op->ok = false;
		op->err = (struct err){.kind = ERR_UNREACHABLE, .msg = "the connection was lost"};
	}
	if (r->link->closed || !op->on_done)
		op_free(op);
	else
		op->on_done(op, op->arg);
	link_release(r->link);
	free(r);
}

static void request_step(struct world *w)
{
	struct request *r = w->requests;

	w->requests = r->next;
	if (!r->applied) {
		request_apply(w, r);
		request_insert(w, r);
	} else if (!r->link->closed && r->link->node->fault == FAULT_PAUSE) {
		r->at = r->link->node->fault_ends + 1; /* a paused node reads its answers when it continues */
		request_insert(w, r);
	} else {
		request_answer(r);
	}
}

/* ---- faults ---- */

static void fault_plan(struct node *n)
{
	n->fault_next = n->world->now + 10 * USEC_MIN + (usec_t)draw(n->world, 6 * USEC_HOUR);
}

static void fault_begin(struct node *n)
{
	struct world *w = n->world;

	n->fault = FAULT_PAUSE + (enum fault)draw(w, FAULT_UPGRADE - FAULT_PAUSE);
	n->fault_ends = w->now + (usec_t)draw(w, draw(w, 2) ? 3 * RUN_TTL : TTL) + USEC_SEC;
	if (n->upgrade_at <= w->now) {
		n->fault = FAULT_UPGRADE;
		n->upgrade_at += UPGRADE_EVERY;
		n->fault_ends = w->now + 5 * USEC_SEC + (usec_t)draw(w, USEC_MIN);
	}
	w->faults[n->fault]++;
	journal(w, "fault", n, " %s", fault_names[n->fault]);
	if (n->fault == FAULT_UPGRADE)
		node_leave(n);
	if (n->fault == FAULT_CRASH || n->fault == FAULT_UPGRADE)
		node_crash(n);
}

static void fault_end(struct node *n)
{
	enum fault was = n->fault;

	n->fault = FAULT_NONE;
	n->fault_ended = n->world->now;
	fault_plan(n);
	n->skew = (usec_t)draw(n->world, 2 * SKEW_MAX) - SKEW_MAX;
	if (was == FAULT_CRASH || was == FAULT_UPGRADE)
		node_start(n);
	journal(n->world, "healed", n, " %s", n->id);
}

/* ---- the week ---- */

static usec_t node_next(const struct node *n)
{
	usec_t next = n->fault != FAULT_NONE ? n->fault_ends : n->upgrade_at < n->fault_next ? n->upgrade_at : n->fault_next, tick;

	if (!n->cluster || n->fault == FAULT_PAUSE || (tick = cluster_next(n->cluster)) == USEC_NEVER)
		return next;
	tick = world_time(n, tick);
	return tick < next ? tick : next;
}

static void node_step(struct node *n)
{
	usec_t now = n->world->now;

	if (n->fault == FAULT_NONE && (n->fault_next <= now || n->upgrade_at <= now))
		fault_begin(n);
	else if (n->fault != FAULT_NONE && n->fault_ends <= now)
		fault_end(n);
	if (n->cluster && n->fault != FAULT_PAUSE && cluster_next(n->cluster) <= node_boottime(n))
		cluster_tick(n->cluster);
}

static void world_step(struct world *w)
{
	usec_t next = w->requests ? w->requests->at : USEC_NEVER;
	struct node *first = NULL;

	for (int i = 0; i < w->n_nodes; i++) {
		usec_t at = node_next(&w->nodes[i]);

		if (at < next) {
			next = at;
			first = &w->nodes[i];
		}
	}
	if (next > w->now)
		w->now = next;
	if (first)
		node_step(first);
	else
		request_step(w);
	check_leaders(w);
	journal_beliefs(w);
}

static void world_open(struct world *w, uint64_t seed, int n_nodes, usec_t length)
{
	AUTO_TEXT path = NULL;

	*w = (struct world){.now = BEGIN, .led_at = BEGIN, .random = seed * 2654435761u + 1, .n_nodes = n_nodes, .length = length};
	w->clock = (struct clock){world_realtime, world_boottime, w};
	snprintf(w->dir, sizeof(w->dir), "%s/leases-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(w->dir))
		abort();
	w->path = xprintf("%s/jobs.db", w->dir);
	path = xprintf("%s/journal", w->dir);
	w->journal = fopen(path, "w");
	if (!w->journal)
		abort();
	fprintf(w->journal, "world %d %" PRId64 " %" PRId64 " %" PRId64 " %d\n", n_nodes, TTL, RUN_TTL, TAKEOVER, SEGMENTS);
	for (int i = 0; i < w->n_nodes; i++) {
		struct node *n = &w->nodes[i];

		n->world = w;
		snprintf(n->name, sizeof(n->name), "node%d", i + 1);
		n->clock = (struct clock){node_realtime, node_boottime, n};
		n->origin = USEC_HOUR + (usec_t)draw(w, 30 * USEC_DAY);
		n->drift = (int)draw(w, 2 * DRIFT_MAX) - DRIFT_MAX;
		n->fault_ended = BEGIN;
		n->skew = (usec_t)draw(w, 2 * SKEW_MAX) - SKEW_MAX;
		n->upgrade_at = BEGIN + (n_nodes > 3 ? USEC_HOUR : USEC_DAY) + i * UPGRADE_STEP;
		fault_plan(n);
		node_start(n);
	}
}

static void world_close(struct world *w)
{
	AUTO_TEXT clean = xprintf("rm -r '%s'", w->dir);

	if (w->journal)
		fclose(w->journal);
	for (int i = 0; i < w->n_nodes; i++)
		if (w->nodes[i].cluster)
			node_crash(&w->nodes[i]);
	while (w->requests) {
		struct request *r = w->requests;

		w->requests = r->next;
		op_free(r->op);
		link_release(r->link);
		free(r);
	}
	for (int i = 0; i < w->n_ids; i++)
		free(w->ids[i]);
	free(w->path);
	if (getenv("KEEP"))
		printf("# journal: %s/journal\n", w->dir);
	else if (system(clean) != 0)
		fprintf(stderr, "could not remove %s\n", w->dir);
}

static void discard_line(enum log_level level, const struct log_about *about, const char *line)
{
	(void)level;
	(void)about;
	(void)line;
}

/* The judge prints a comment per finding; its exit code is the verdict. */
static bool judge_agrees(struct world *w)
{
	const char *source = getenv("top_srcdir");
	AUTO_TEXT command = xprintf("python3 '%s/tests/sim/judge_leases.py' '%s/journal'", source ? source : ".", w->dir);

	fclose(STEAL(w->journal));
	fflush(stdout);
	return system(command) == 0;
}

static bool world_run(int number, uint64_t seed, int n_nodes, usec_t length)
{
	struct world *w = xcalloc(1, sizeof(*w));
	bool ok, agrees;

	world_open(w, seed, n_nodes, length);
	while (w->now < BEGIN + length && !w->failure[0])
		world_step(w);
	ok = !w->failure[0];
	if (!ok)
		printf("# after %" PRId64 " s: %s\n", (w->now - BEGIN) / USEC_SEC, w->failure);
	printf("# %d nodes, %.1f days: %d pauses, %d crashes, %d partitions, %d lossy times, %d upgrades; %d terms, %d nodes closed; "
	       "longest time without a leader %.1f s of a lease of %.0f s\n", n_nodes, (double)length / USEC_DAY,
		w->faults[FAULT_PAUSE], w->faults[FAULT_CRASH], w->faults[FAULT_PARTITION], w->faults[FAULT_LOSSY],
		w->faults[FAULT_UPGRADE], w->terms, w->reaped, (double)w->longest / USEC_SEC, (double)TTL / USEC_SEC);
	agrees = judge_agrees(w);
	printf("%sok %d - leases_of_%d_nodes_have_one_leader_per_term_and_takeover_within_a_lease\n", ok ? "" : "not ", number, n_nodes);
	printf("%sok %d - an_independent_judge_agrees_on_%d_nodes\n", agrees ? "" : "not ", number + 1, n_nodes);
	world_close(w);
	free(w);
	return ok && agrees;
}

static int64_t number_of(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoll(text, NULL, 10) : otherwise;
}

int main(void)
{
	uint64_t seed = (uint64_t)number_of("SEED", 7);
	bool one = getenv("NODES") != NULL, ok;

	log_open("sim_leases", LOG_LEVEL_ERROR, discard_line);
	printf("1..%d\n# SEED=%" PRIu64 "\n", one ? 2 : 4, seed);
	if (one) {
		int64_t n = number_of("NODES", 3);

		return n < 2 || n > NODES_MAX || !world_run(1, seed, (int)n, number_of("DAYS", 7) * USEC_DAY);
	}
	ok = world_run(1, seed, 3, 7 * USEC_DAY);
	return !world_run(3, seed, 50, 5 * USEC_HOUR) || !ok;
}
