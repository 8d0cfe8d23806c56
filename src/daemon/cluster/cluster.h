/* SPDX-License-Identifier: Apache-2.0 */
/* Renews the leases of this node, leads when it holds the leader lease, and tells whether runs may be planned and started. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct claimed;
struct cluster;
struct err;
struct run_change;
struct sd_event;
struct store_thread;

struct cluster_options {                /* everything is borrowed and outlives the cluster */
	struct store_thread *store;     /* the writer of the engine */
	struct store_thread *leases;    /* whose batches are renewals only, where that can be had; else the same */
	const char *node_id, *node_name;
	usec_t ttl;                     /* how long a lease lasts: the right to lead, to plan and to start */
	usec_t run_ttl;                 /* how long the runs of this node are its own without a renewal; not below ttl */
	usec_t alone_ttl;               /* while no other node is there, whose coming we hear of (cluster_renew_now); 0: no such */
	bool barred;                    /* it never leads */
	const char *term_file;          /* the highest term we saw of this store; NULL: not kept */
	void (*on_change)(void *arg);   /* pump soon */
	void (*on_lost)(struct claimed *c, void *arg);               /* a dead node had it: to be given up */
	void (*on_to_end)(const struct run_change *r, void *arg);    /* a run of ours, which somebody wants to end */
	void (*on_looked)(void *arg);   /* others may have changed anything that people wait for */
	void (*on_given_up)(void *arg); /* the leader thought us dead: what we had is not ours any more; open the node again */
	void (*on_peers)(void *arg);  /* there are other nodes */
	/* Boottime: the spawner ends what must not run twice at end_at, and kills what is left at kill_at; 0: no deadline. */
	void (*on_deadline)(usec_t end_at, usec_t kill_at, void *arg);
	void (*on_exit)(int status, void *arg);
	void *arg;
};

bool cluster_new(struct sd_event *ev, const struct cluster_options *o, struct cluster **ret, struct err *e);
void cluster_free(struct cluster *c); /* after the store threads have ended */
AUTO_DEFINE(cluster);

void cluster_opened(struct cluster *c, int64_t others); /* the node is in the store: leases are kept from now on */
void cluster_stop(struct cluster *c);                   /* no more renewals */
/* How the node leaves: whether its spawner keeps a deadline, and how long its runs are waited for then. */
bool cluster_leave(struct cluster *c, usec_t *ret_run_ttl); /* implies cluster_stop */
void cluster_left(struct cluster *c);                       /* the departure is in the store */

/* Whether our lease is good for sure: counted from before it was asked for, less a margin (design: Cluster). */
bool cluster_trusted(const struct cluster *c);
bool cluster_leads(const struct cluster *c);   /* ... and the office, too */
int64_t cluster_peers(const struct cluster *c); /* other nodes alive, as last seen */
usec_t cluster_overdue(const struct cluster *c); /* how long the first slot of all has waited to be planned; NULL: 0 */
usec_t cluster_lease_age(const struct cluster *c); /* since it was asked for; NULL: 0 */
usec_t cluster_runs_remain(const struct cluster *c); /* of the run lease; NULL or over: 0 */
usec_t cluster_offset(const struct cluster *c);  /* the store's clock less ours */
void cluster_look(struct cluster *c);          /* somebody changed something: see what concerns us */
void cluster_look_soon(struct cluster *c);     /* we owe the others news */
void cluster_renew_now(struct cluster *c);         /* the store refused us: renew now, and learn why */
