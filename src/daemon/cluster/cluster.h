/* SPDX-License-Identifier: Apache-2.0 */
/* Renews the node and leader leases of this node, and tells whether it may plan, start and lead. */
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

struct cluster_options {                /* all pointers are borrowed and outlive the cluster */
	const struct clock *clock;      /* this machine's clock; NULL: the system's */
	usec_t (*jitter)(usec_t max, void *arg); /* a random delay below max; NULL: from the kernel */
	struct store_thread *store;     /* the daemon's writer */
	struct store_thread *leases;    /* a writer whose batches hold renewals only; on SQLite the same as 'store' */
	const char *node_id, *node_name;
	usec_t ttl;                     /* length of a lease, which gives the right to lead, to plan and to start */
	usec_t run_ttl;                 /* length of the run lease, which keeps this node's runs its own; at least ttl */
	usec_t alone_ttl;               /* length of a lease while this is the only node and arrivals are seen by a watch; 0: none */
	bool barred;                    /* this node never leads */
	const char *term_file;          /* keeps the highest term that was seen of this store; NULL: not kept */
	void (*on_change)(void *arg);   /* leases, segments or peers changed: look for work */
	void (*on_lost)(struct claimed *c, void *arg);            /* a run of a dead node, to be given up */
	void (*on_to_end)(const struct run_change *r, void *arg); /* a run of this node that a client asked to end */
	void (*on_looked)(void *arg);   /* peers may have changed runs that clients wait for */
	void (*on_given_up)(void *arg); /* the leader has given up this node and its runs; open the node again */
	void (*on_peers)(void *arg);    /* there are other nodes */
	/* Boottime. The spawner ends runs that must not run twice at end_at and kills the rest at kill_at; 0: no deadline. */
	void (*on_deadline)(usec_t end_at, usec_t kill_at, void *arg);
	void (*on_exit)(int status, void *arg);
	void *arg;
};

/* Without an event loop (NULL) the caller runs cluster_tick() at cluster_next(). */
bool cluster_new(struct sd_event *ev, const struct cluster_options *o, struct cluster **ret, struct err *e);
void cluster_free(struct cluster *c); /* after the store threads have ended */
AUTO_DEFINE(cluster);

usec_t cluster_next(const struct cluster *c); /* boottime of the next tick; USEC_NEVER: none */
void cluster_tick(struct cluster *c);         /* does what is due: renews, polls, logs the end of a lease */

void cluster_opened(struct cluster *c, int64_t others); /* the node's row is in the store: begins to renew */
void cluster_stop(struct cluster *c);                   /* sends no more renewals */
/* Prepares the departure. Returns whether the spawner keeps a deadline, and the run lease that other nodes wait for. */
bool cluster_leave(struct cluster *c, usec_t *ret_run_ttl); /* implies cluster_stop */
void cluster_left(struct cluster *c);                       /* the departure is in the store */

/* Whether the lease is valid for certain: counted from before the renewal was sent, minus a margin. */
bool cluster_trusted(const struct cluster *c);
bool cluster_leads(const struct cluster *c);         /* ... and so is the leader lease */
bool cluster_is_draining(const struct cluster *c); /* starts nothing new */
int64_t cluster_peers(const struct cluster *c);      /* other live nodes, as last seen */
/*
 * How long the first unplanned slot had been due at the last renewal; 0 if c is NULL. 'own_next' is the first unplanned slot of this
 * node now: a slot of this node that was planned since the renewal is not reported.
 */
usec_t cluster_overdue(const struct cluster *c, usec_t own_next);
usec_t cluster_lease_age(const struct cluster *c);   /* since the current lease was asked for; 0 if c is NULL */
usec_t cluster_lease_remain(const struct cluster *c); /* time for which the lease is trusted; 0 if it is over or c is NULL */
usec_t cluster_runs_remain(const struct cluster *c); /* of the run lease; 0 if it is over or c is NULL */
usec_t cluster_offset(const struct cluster *c);      /* the store's clock minus this machine's */
void cluster_look(struct cluster *c);                /* polls the row of this node for changes by others */
void cluster_look_soon(struct cluster *c);           /* ... shortly, to carry a notification to the peers */
void cluster_renew_now(struct cluster *c);           /* renews at once, for example after the store fenced a write */
