/* SPDX-License-Identifier: Apache-2.0 */
/* The world of sim_leases: nodes with their own clocks, one store, requests in flight. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cluster;
struct op;
struct op_lease;
struct store;

#define NODES_MAX 64
#define TTL (3 * USEC_MIN)
#define RUN_TTL (6 * USEC_MIN)
#define TRIP_MAX (200 * USEC_MSEC)  /* of a request or an answer */
#define TIMEOUT (2 * USEC_SEC)      /* after which a lost request or answer is an error */
#define DRIFT_MAX 2000              /* parts per million */
#define EPOCH (1800000000 * USEC_SEC)
#define BEGIN USEC_DAY              /* boottime of the store's host when the week begins */
#define TAKEOVER (TTL + TTL / 100 + 2 * TIMEOUT) /* the old lease, clock drift and one lost renewal */
#define SETTLED (3 * TTL)           /* a node is healthy when it had no fault for so long */
#define IDS_MAX (1 << 17)
#define SEGMENTS 64
#define UPGRADE_EVERY (7 * USEC_DAY)  /* all nodes, one after another */
#define UPGRADE_STEP (3 * USEC_MIN)
#define SKEW_MAX (2 * USEC_HOUR)     /* of the time of day */

struct world;

enum fault { FAULT_NONE, FAULT_PAUSE, FAULT_CRASH, FAULT_PARTITION, FAULT_LOSSY, FAULT_UPGRADE, FAULT_MAX };

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
	usec_t upgrade_at;
	usec_t skew;               /* of its time of day */
	bool trusted, leads;       /* as in the journal */
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
	int n_nodes;
	usec_t length;
	struct node nodes[NODES_MAX];
	FILE *journal;
	struct request *requests;
	char *ids[IDS_MAX];        /* owned: operations in flight borrow them */
	int n_ids;
	int64_t term, term_node;   /* the highest term and the incarnation that held it */
	usec_t led_at;             /* a usable leader was last seen */
	int faults[FAULT_MAX], terms, reaped;
	usec_t longest;            /* without a leader while a healthy node was there */
	char failure[300];
};

usec_t world_time(const struct node *n, usec_t at); /* when the clock of the node shows 'at' */

/* Keeps the first violated invariant. */
__attribute__((format(printf, 2, 3))) void fault_found(struct world *w, const char *format, ...);
__attribute__((format(printf, 4, 5))) void journal(struct world *w, const char *kind, const struct node *n, const char *format, ...);
void journal_beliefs(struct world *w);
void journal_members(struct world *w, struct store *s);

void check_reaped(struct world *w, struct store *s);
void check_term(struct world *w, const struct node *n, const struct op_lease *l);
void check_leaders(struct world *w);
