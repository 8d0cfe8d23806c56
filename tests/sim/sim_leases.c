/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A week of leases on a fake clock. Three nodes with drifting clocks share one store. They pause, crash, and lose requests
 * and answers. No two nodes lead at one time or in one term, another node takes over within a lease, and no node is
 * closed before its spawner has killed its runs.
 *
 * usage: SEED=n sim_leases    TAP
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/batch.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "store/read/list_nodes.h"
#include "store/store.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES 3
#define TTL (3 * USEC_MIN)
#define RUN_TTL (6 * USEC_MIN)
#define TRIP_MAX (200 * USEC_MSEC)  /* of a request or an answer */
#define TIMEOUT (2 * USEC_SEC)      /* after which a lost request or answer is an error */
#define DRIFT_MAX 2000              /* parts per million */
#define EPOCH (1800000000 * USEC_SEC)
#define BEGIN USEC_DAY              /* boottime of the store's host when the week begins */
#define TAKEOVER (TTL + TTL / 100 + 2 * TIMEOUT) /* the old lease, clock drift and one lost renewal */
#define SETTLED (3 * TTL)           /* a node is healthy when it had no fault for so long */
#define IDS_MAX 4096

struct world;

enum fault { FAULT_NONE, FAULT_PAUSE, FAULT_CRASH, FAULT_PARTITION, FAULT_LOSSY, FAULT_MAX };

/* One node: its clock, its connection to the store, its leases. */
struct node {
	struct world *world;
	char name[16];
	const char *id;            /* of this incarnation; owned by the world */
	struct clock clock;
	usec_t origin;             /* its boottime when the week begins */
	int drift;                 /* parts per million */
	struct cluster *cluster;   /* NULL: crashed */
	struct store_thread *link;
	enum fault fault;
	usec_t fault_ends, fault_next, fault_ended;
	usec_t end_at, kill_at;    /* the spawner's deadline, on the node's clock; 0: none */
	int given_up;
};

/* The daemon's store thread: requests travel, are applied in order of arrival, and answers travel back. */
struct store_thread {
	struct node *node;
	struct store *store;
	int references;            /* requests in flight, and the node */
	bool closed;               /* the node of this connection has crashed */
	usec_t last_arrival, last_answer; /* a connection keeps the order */
};

struct request {
	usec_t at;                 /* when the next step happens */
	struct store_thread *link;
	struct op *op;
	bool applied, drops_request, drops_answer;
	struct request *next;      /* in order of 'at' */
};

struct world {
	usec_t now;                /* boottime of the store's host */
	uint64_t random;
	char dir[64];
	char *path;
	struct clock clock;        /* the store's */
	struct node nodes[NODES];
	struct request *requests;
	char *ids[IDS_MAX];        /* owned: operations in flight borrow them */
	int n_ids;
	int64_t term, term_node;   /* the highest term and the incarnation that held it */
	usec_t led_at;             /* a usable leader was last seen */
	int faults[FAULT_MAX], terms, reaped;
	usec_t longest;            /* without a leader while a healthy node was there */
	char failure[300];
};

static uint64_t draw(struct world *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return below ? w->random % below : 0;
}

__attribute__((format(printf, 2, 3))) static void fault_found(struct world *w, const char *format, ...)
{
	va_list ap;

	if (w->failure[0])
		return;
	va_start(ap, format);
	vsnprintf(w->failure, sizeof(w->failure), format, ap);
	va_end(ap);
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
static usec_t world_time(const struct node *n, usec_t at)
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
	return EPOCH + node_boottime(arg);
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

/* ---- invariants ---- */

/* A node that is not open in the store was closed. Its spawner must have killed its runs before. */
static void check_reaped(struct world *w, struct store *s)
{
	AUTO_DONE(node_list) list = {};
	struct err e = {};

	if (!list_nodes_open(s, &list, &e)) {
		fault_found(w, "could not list nodes: %s", e.msg);
		return;
	}
	for (int i = 0; i < NODES; i++) {
		struct node *n = &w->nodes[i];
		bool found = !n->id || !n->cluster;

		for (size_t j = 0; j < list.n && !found; j++)
			found = text_equal(list.v[j].id, n->id);
		if (!found && n->kill_at && world_time(n, n->kill_at) > w->now)
			fault_found(w, "node %s was closed %" PRId64 " ms before its spawner kills its runs", n->name,
				(world_time(n, n->kill_at) - w->now) / USEC_MSEC);
	}
}

static void check_term(struct world *w, const struct node *n, const struct op_lease *l)
{
	int64_t node = n - w->nodes + 1;

	if (l->term < w->term)
		fault_found(w, "the term went back from %" PRId64 " to %" PRId64, w->term, l->term);
	if (!l->leads)
		return;
	if (l->term == w->term && w->term_node && w->term_node != node)
		fault_found(w, "two nodes lead in term %" PRId64, l->term);
	if (l->term > w->term)
		w->terms++;
	w->term = l->term;
	w->term_node = node;
}

static bool is_healthy(const struct world *w, const struct node *n)
{
	return n->cluster && n->fault == FAULT_NONE && w->now - n->fault_ended > SETTLED;
}

static void check_leaders(struct world *w)
{
	int leaders = 0;
	bool usable = false, healthy = false;

	for (int i = 0; i < NODES; i++) {
		const struct node *n = &w->nodes[i];
		bool leads = n->cluster && cluster_leads(n->cluster);

		leaders += leads;
		usable = usable || (leads && n->fault != FAULT_PAUSE);
		healthy = healthy || is_healthy(w, n);
	}
	if (leaders > 1)
		fault_found(w, "%d nodes lead at one time", leaders);
	if (usable || !healthy)
		w->led_at = w->now;
	if (w->now - w->led_at > w->longest)
		w->longest = w->now - w->led_at;
	if (w->now - w->led_at > TAKEOVER)
		fault_found(w, "no leader for %" PRId64 " ms while a healthy node was there", (w->now - w->led_at) / USEC_MSEC);
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
	n->end_at = n->kill_at = 0; /* the daemon has the spawner end the runs before the node is opened again */
	node_open(n);
}

static void on_deadline(usec_t end_at, usec_t kill_at, void *arg)
{
	struct node *n = arg;

	n->end_at = end_at;
	n->kill_at = kill_at;
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
	if (r->op->kind == OP_LEASE && r->op->ok)
		check_term(w, r->link->node, lease_op(r->op));
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

	n->fault = FAULT_PAUSE + (enum fault)draw(w, FAULT_MAX - FAULT_PAUSE);
	n->fault_ends = w->now + (usec_t)draw(w, draw(w, 2) ? 3 * RUN_TTL : TTL) + USEC_SEC;
	w->faults[n->fault]++;
	if (n->fault == FAULT_CRASH)
		node_crash(n);
}

static void fault_end(struct node *n)
{
	enum fault was = n->fault;

	n->fault = FAULT_NONE;
	n->fault_ended = n->world->now;
	fault_plan(n);
	if (was == FAULT_CRASH)
		node_start(n);
}

/* ---- the week ---- */

static usec_t node_next(const struct node *n)
{
	usec_t next = n->fault == FAULT_NONE ? n->fault_next : n->fault_ends, tick;

	if (!n->cluster || n->fault == FAULT_PAUSE || (tick = cluster_next(n->cluster)) == USEC_NEVER)
		return next;
	tick = world_time(n, tick);
	return tick < next ? tick : next;
}

static void node_step(struct node *n)
{
	usec_t now = n->world->now;

	if (n->fault == FAULT_NONE && n->fault_next <= now)
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

	for (int i = 0; i < NODES; i++) {
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
}

static void world_open(struct world *w, uint64_t seed)
{
	*w = (struct world){.now = BEGIN, .led_at = BEGIN, .random = seed * 2654435761u + 1};
	w->clock = (struct clock){world_realtime, world_boottime, w};
	snprintf(w->dir, sizeof(w->dir), "%s/leases-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(w->dir))
		abort();
	w->path = xprintf("%s/jobs.db", w->dir);
	for (int i = 0; i < NODES; i++) {
		struct node *n = &w->nodes[i];

		n->world = w;
		snprintf(n->name, sizeof(n->name), "node%d", i + 1);
		n->clock = (struct clock){node_realtime, node_boottime, n};
		n->origin = USEC_HOUR + (usec_t)draw(w, 30 * USEC_DAY);
		n->drift = (int)draw(w, 2 * DRIFT_MAX) - DRIFT_MAX;
		n->fault_ended = BEGIN;
		fault_plan(n);
		node_start(n);
	}
}

static void world_close(struct world *w)
{
	AUTO_TEXT clean = xprintf("rm -r '%s'", w->dir);

	for (int i = 0; i < NODES; i++)
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
	if (system(clean) != 0)
		fprintf(stderr, "could not remove %s\n", w->dir);
}

static void discard_line(enum log_level level, const struct log_about *about, const char *line)
{
	(void)level;
	(void)about;
	(void)line;
}

int main(void)
{
	const char *wanted = getenv("SEED");
	uint64_t seed = wanted ? strtoull(wanted, NULL, 10) : 7;
	struct world w;

	log_open("sim_leases", LOG_LEVEL_ERROR, discard_line);
	world_open(&w, seed);
	while (w.now < BEGIN + 7 * USEC_DAY && !w.failure[0])
		world_step(&w);
	printf("1..1\n# SEED=%" PRIu64 "\n", seed);
	if (w.failure[0])
		printf("# after %" PRId64 " s: %s\n", (w.now - BEGIN) / USEC_SEC, w.failure);
	printf("# %d pauses, %d crashes, %d partitions, %d lossy times; %d terms, %d nodes closed; longest time without a leader "
	       "%.1f s of a lease of %.0f s\n", w.faults[FAULT_PAUSE], w.faults[FAULT_CRASH], w.faults[FAULT_PARTITION],
		w.faults[FAULT_LOSSY], w.terms, w.reaped, (double)w.longest / USEC_SEC, (double)TTL / USEC_SEC);
	printf("%sok 1 - a_week_of_leases_has_one_leader_per_term_and_takeover_within_a_lease\n", w.failure[0] ? "not " : "");
	world_close(&w);
	return w.failure[0] ? 1 : 0;
}
