/* SPDX-License-Identifier: Apache-2.0 */
/* Claims due runs while there is room, has them started, and records how each ended. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/warrant.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct artifact_requests;
struct dispatcher;
struct err;
struct run_watch_set;
struct machine_figures;
struct plan;
struct sandbox_offers;
struct sd_event;
struct spawn_report;
struct store_thread;

struct dispatcher_options {             /* everything is borrowed and outlives the dispatcher */
	const struct clock *clock;
	struct store_thread *store;
	struct run_watch_set *run_watch_set;
	struct artifact_requests *artifacts;
	const char *node_id;            /* random, of this life */
	const char *node_name;          /* stays the same over restarts */
	const char *spawner_socket;
	const char *spawner_program;    /* started when nobody listens; NULL: somebody else's business */
	const char *runtime_dir, *output_dir;
	usec_t lease;                   /* how long this node lives without a renewal */
	usec_t run_lease;               /* how long its runs are its own without one */
	usec_t (*offset)(void *arg);    /* of the store's clock against this host's; NULL: none */
	bool barred;                    /* this node never leads */
	const char *labels;             /* of this node, as op_claim wants them; NULL: none */
	const char *boot_id;            /* of the kernel; NULL: unknown */
	const char *machine;            /* NULL: unknown */
	bool (*others)(void *arg);      /* there are other nodes, which may be asked for what ran here */
	bool (*trusted)(void *arg);     /* whether runs may be started now */
	bool in_use;                    /* see op_node_open, as the next */
	const struct strv *past_spawners;
	void (*on_spawner)(const char *spawner, void *arg); /* NULL: nothing; the store hears of this spawner next */
	void (*on_opened)(int64_t others, void *arg); /* the node is in the store, with so many others */
	void (*on_fenced)(void *arg);   /* the store says that we have no lease */
	void (*on_notice)(const struct spawn_report *r, void *arg); /* of a notice; a complete list; the spawner's end */
	void (*on_ready)(void *arg);                 /* once: what earlier lives left has been taken over */
	void (*on_change)(void *arg);                /* there may be room or work again: pump soon */
	void (*on_exit)(int status, void *arg);      /* the daemon must end with this status */
	void *arg;
};

bool dispatcher_new(struct sd_event *ev, const struct dispatcher_options *o, struct dispatcher **ret,
	struct err *e);
void dispatcher_free(struct dispatcher *d); /* workers keep running */
AUTO_DEFINE(dispatcher);

/* Connects to the spawner and takes over; on_ready follows. False: no spawner could be had. */
bool dispatcher_start(struct dispatcher *d, struct err *e);

usec_t dispatcher_last_seen(const struct dispatcher *d); /* when an engine was here before this one; 0: never */
/* The first queued run that waits in the store, after a batch; USEC_NEVER: none. */
void dispatcher_set_next_due(struct dispatcher *d, usec_t next_due);
/* Claims what is due if there is room. Returns when to call again; USEC_NEVER: after the next event. */
usec_t dispatcher_pump(struct dispatcher *d);
enum warrant_policy dispatcher_warrants(const struct dispatcher *d); /* of the spawner, the last that was there */
void dispatcher_set_max_running(struct dispatcher *d, size_t max_running);
void dispatcher_set_output_max(struct dispatcher *d, int64_t bytes);  /* kept of one attempt */
void dispatcher_set_owner_max(struct dispatcher *d, size_t owner_max); /* of one owner at a time; 0: no such limit */
/* What conditions are held against from now on; until the first call nothing is known. */
void dispatcher_set_machine(struct dispatcher *d, const struct machine_figures *m);
void dispatcher_machine(const struct dispatcher *d, struct machine_figures *ret);

/* enum limit_kind: what the spawner cannot enforce and refuses; nothing while there is none. */
unsigned dispatcher_limits_refused(const struct dispatcher *d);

/* No further claims; what is claimed and not started goes back. Running ones go on. */
void dispatcher_stop(struct dispatcher *d);

/* What the spawner says of its sandbox profiles: a reference; NULL: not heard yet. */
struct sandbox_offers *dispatcher_sandboxes(const struct dispatcher *d);

struct dispatcher_counts {
	size_t in_flight;   /* claimed and running here */
	size_t room;        /* how many more may be claimed */
	size_t owner_max;   /* runs of one owner at a time; 0: any number */
	bool spawner_up;    /* connected, and what it has is known */
	bool stopping;      /* nothing is claimed any more */
	bool due;           /* something in the store waits to be claimed */
	uint64_t ended;     /* runs that ended here in all */
	const char *refused; /* borrowed: why the last claim was; NULL: it was not */
	usec_t refused_since;
	const char *artifacts; /* borrowed: why artifacts have to wait; NULL: no reason is known */
};
void dispatcher_counts(const struct dispatcher *d, struct dispatcher_counts *ret);

/* Whether the spawner can start runs. Costs some system calls: it is for people who ask. */
struct dispatcher_spawner {
	char why[128];  /* why it starts nothing: not connected, stopped, or it does not read; empty: it does */
	pid_t stopped;  /* its process, if SIGCONT would help; else 0 */
};
void dispatcher_spawner(const struct dispatcher *d, struct dispatcher_spawner *ret);

/* The cache's questions and answers. */
void dispatcher_artifact_done(struct dispatcher *d, int64_t run, int64_t fence, int tree /* moved */, const struct err *why /* NULL: it is there */);
void dispatcher_artifact_file(struct dispatcher *d, int64_t run, int64_t fence, int socket /* moved */); /* has the spawner send the file there */
void dispatcher_artifacts_hold(struct dispatcher *d); /* artifacts_hold() for each run that uses one */

/* Has the spawner run the command of a notice (its run is below 0); its reports go to on_notice. */
bool dispatcher_start_notice(struct dispatcher *d, const struct plan *p, struct err *e);
void dispatcher_notice_settled(struct dispatcher *d, int64_t run, int64_t fence); /* after the commit of its end */

/* After the commit of a cancellation: ends the worker, if it is one of ours. */
/* The kept output of an attempt goes; false: there is no spawner to do it now. */
/* A run of a dead node, which the store has made ours: it is recorded as lost. */
struct claimed;
void dispatcher_record_lost(struct dispatcher *d, struct claimed *c);
/* The store has given this node up: what we had is not ours; the node is opened again. */
void dispatcher_rejoin(struct dispatcher *d);
/* By then (boottime) the spawner ends what must not run twice, unless it is told again; 0: no such moment. */
/* The runs that the spawner has, or may have, as far as the store was told; caller frees. */
int64_t *dispatcher_held(const struct dispatcher *d, size_t *ret_n);
void dispatcher_deadline(struct dispatcher *d, usec_t end_at, usec_t kill_at);
bool dispatcher_forget_output(struct dispatcher *d, int64_t run, int64_t attempt);
void dispatcher_cancel(struct dispatcher *d, int64_t run, int64_t fence);
