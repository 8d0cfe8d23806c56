/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the due runs of this node, from the claim to the recorded end. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct artifact_requests;
struct callbacks;
struct claimed;
struct dispatcher;
struct err;
struct json_t;
struct machine_figures;
struct table_gate;
struct metrics;
struct net_client;
struct spans;
struct run_watch_set;
struct sd_event;
struct spawner_link;
struct store_thread;
struct strv;

struct dispatcher_options {             /* everything is borrowed and outlives the dispatcher */
	const struct clock *clock;
	struct store_thread *store;
	struct run_watch_set *run_watch_set;
	struct artifact_requests *artifacts;
	struct spawner_link *spawner;
	struct net_client *net;         /* NULL: calls cannot be started */
	const char *http_allow, *http_proxy; /* NULL: none */
	const char *lambda_functions, *lambda_endpoint; /* NULL: none; AWS */
	const struct callbacks *callbacks;   /* NULL: there are no asynchronous calls */
	struct metrics *metrics;        /* NULL: nothing is counted */
	struct spans *spans;            /* NULL: no spans are exported */
	const char *node_id;            /* random, new with each start of the daemon */
	const char *node_name;          /* the same after a restart */
	const char *output_dir;
	usec_t lease;                   /* the node lease */
	/* How long the runs of this node belong to it after the last renewal. */
	usec_t run_lease;
	bool barred;                    /* this node never leads */
	const char *labels;             /* of this node, in the format of OP_CLAIM; NULL: none */
	const char *boot_id;            /* of the kernel; NULL: unknown */
	const char *machine;            /* NULL: unknown */
	/* Other nodes exist, so they may ask for the output of runs of this node. */
	bool (*others)(void *arg);
	bool (*trusted)(void *arg);     /* the node lease is valid: runs may be started */
	bool in_use;                    /* this and the next: see op_node_open */
	const struct strv *past_spawners;
	/* Called before this spawner is registered in the store; NULL: nothing. */
	void (*on_spawner)(const char *spawner, void *arg);
	/* The node is registered in the store, beside this many other nodes. */
	void (*on_opened)(int64_t others, void *arg);
	/* The store or the spawner refused: this node has no lease. */
	void (*on_fenced)(void *arg);
	void (*on_ready)(void *arg);    /* once: the runs of earlier daemons have been taken over */
	void (*on_change)(void *arg);   /* there may be room or work again: pump soon */
	void (*on_exit)(int status, void *arg); /* the daemon must end with this status */
	void *arg;
};

bool dispatcher_new(struct sd_event *ev, const struct dispatcher_options *o,
	struct dispatcher **ret, struct err *e);
void dispatcher_free(struct dispatcher *d); /* workers keep running */
AUTO_DEFINE(dispatcher);

/*
 * Connects to the spawner and takes over the runs of earlier daemons; on_ready follows. Fails if no
 * spawner is reachable.
 */
bool dispatcher_start(struct dispatcher *d, struct err *e);
/* Claims nothing more and gives back claimed runs that have not started. Running ones continue. */
void dispatcher_stop(struct dispatcher *d);

/* When an earlier daemon of this node last wrote to the store; 0: never. */
usec_t dispatcher_last_seen(const struct dispatcher *d);
/* When the first queued run in the store is due, after each batch; USEC_NEVER: there is none. */
void dispatcher_set_next_due(struct dispatcher *d, usec_t next_due);
/*
 * Claims what is due if there is room. Returns when to call again; USEC_NEVER: after the next
 * event.
 */
usec_t dispatcher_pump(struct dispatcher *d);
/* While the clock is unsure, only runs created since then are claimed; 0: all. */
void dispatcher_set_made_since(struct dispatcher *d, usec_t made_since);
void dispatcher_set_max_running(struct dispatcher *d, size_t max_running);
void dispatcher_set_owner_store(struct dispatcher *d, int64_t bytes);  /* of all rows of an owner other than root; 0: no limit */
void dispatcher_set_output_max(struct dispatcher *d, int64_t bytes);   /* kept of one attempt */
/* Limit of concurrent runs of one owner; 0: none. */
void dispatcher_set_owner_max(struct dispatcher *d, size_t owner_max);
/* The figures that conditions ('when') are compared with; unknown until the first call. */
void dispatcher_set_tables(struct dispatcher *d, const struct table_gate *t); /* why jobs of crontabs do not run */
void dispatcher_set_machine(struct dispatcher *d, const struct machine_figures *m);
void dispatcher_machine(const struct dispatcher *d, struct machine_figures *ret);

struct dispatcher_counts {
	size_t in_flight;    /* claimed or running on this node */
	size_t room;         /* how many more may be claimed */
	size_t owner_max;    /* running at a time, of one owner; 0: no limit */
	bool spawner_up;     /* connected, and its runs are known */
	bool stopping;       /* nothing is claimed any more */
	bool due;            /* a run in the store is due */
	size_t unrecorded;   /* ended runs whose end the store has not recorded */
	uint64_t ended;      /* runs that ended on this node since the daemon started */
	const char *refused; /* borrowed: why the last claim failed; NULL: it succeeded */
	usec_t refused_since;
	/* Borrowed: why runs with artifacts, and calls, have to wait; NULL: no reason is known. */
	const char *artifacts, *calls;
};
void dispatcher_counts(const struct dispatcher *d, struct dispatcher_counts *ret);

/* Calls from artifact_requests.h. */
void dispatcher_artifact_done(struct dispatcher *d, int64_t run, int64_t fence,
	int tree /* moved */, const struct err *why /* NULL: the artifact is there */);
/* Has the spawner open the file of the artifact and send it to the socket. */
void dispatcher_artifact_file(struct dispatcher *d, int64_t run, int64_t fence,
	int socket /* moved */);
/* Calls artifact_requests_hold() for each run that uses one. */
void dispatcher_artifacts_hold(struct dispatcher *d);

/* All calls of an earlier daemon that jobsched-net has were reported. The others are lost. */
void dispatcher_net_synced(struct dispatcher *d);

/* A report of the target of an asynchronous call. */
enum dispatcher_call_state { DISPATCHER_CALL_RUNNING, DISPATCHER_CALL_SUCCEEDED, DISPATCHER_CALL_FAILED, DISPATCHER_CALL_RETRY };
struct dispatcher_call_report {
	int64_t run, fence;
	enum dispatcher_call_state state;
	const char *error, *output; /* NULL: none */
	const struct json_t *results; /* an object, see wire/results_json.h; NULL: none */
};
/* ERR_NOT_FOUND: the attempt is not an asynchronous call that runs on this node. */
bool dispatcher_call_find(const struct dispatcher *d, int64_t run, int64_t fence, int64_t *ret_job, struct err *e);
/* Records the end of a call that dispatcher_call_find() has found. */
void dispatcher_call_report(struct dispatcher *d, const struct dispatcher_call_report *r);

/* Ends the worker of a run if it is on this node. Call it after the commit of the cancellation. */
void dispatcher_cancel(struct dispatcher *d, int64_t run, int64_t fence);
/* Records a run of a dead node as lost. The store has transferred it to this node. */
void dispatcher_record_lost(struct dispatcher *d, struct claimed *c);
/* The leader has given this node up: forgets its runs and registers the node again. */
void dispatcher_rejoin(struct dispatcher *d);
/* The runs that the spawner has or may have, as far as the store knows; caller frees. */
int64_t *dispatcher_held(const struct dispatcher *d, size_t *ret_n);
