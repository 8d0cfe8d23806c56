/* SPDX-License-Identifier: Apache-2.0 */
/* State of the dispatcher, private to the dispatcher's files. */
#pragma once
#include "base/err.h"
#include "base/log.h"
#include "core/decide/machine_conditions.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/schedule/active_run.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/rate_meter.h"
#include "net/net_frame.h"
#include <systemd/sd-event.h>

struct job_spec;
struct long_runs;
struct op;
struct progress_recorder;
struct spec_cache;
struct state_transfers;

struct dispatcher {
	struct dispatcher_options o;
	struct active_runs active_runs;
	size_t max_running, owner_max;
	int64_t output_max;              /* bytes */
	struct machine_figures machine;
	struct table_gate tables;
	usec_t next_due, not_before;
	usec_t made_since;               /* see dispatcher_set_made_since() */
	bool claiming, stopped;
	struct map early_cancels;        /* run → fence: cancelled while the claim was under way */
	/* Run → fence: no longer of this node, but its worker continues. */
	struct map disowned;
	struct op *refused;              /* operations to be submitted again */
	unsigned start_failures;         /* transient ones in a row */
	sd_event_source *started_timer, *hold_timer, *retry_timer;
	struct long_runs *long_runs;
	struct progress_recorder *progress;
	struct spec_cache *specs;
	struct state_transfers *states;
	uint64_t ended;                  /* runs, since the daemon started */
	struct err claim_refused;        /* why the last claim failed; ERR_NONE: it succeeded */
	usec_t claim_refused_since;
	struct log_repeat not_claimed;
	struct log_repeat not_recorded;  /* ends that the store refused */
	size_t late_ends;                /* how many, since the first was logged */
	struct log_repeat not_given_back;
	struct log_repeat artifact_busy;
	struct log_repeat call_busy;
	char call_refused[NET_TEXT_MAX]; /* why jobsched-net did not get a call */
	usec_t call_refused_at;          /* boottime; 0: never */
	struct rate_meter ends;          /* as many runs as ended in the last 20 to 40 ms are claimed ahead */

	bool spawner_stopping;           /* the spawner refuses starts */
	bool was_open;                   /* the node was registered once */
	bool was_ready;                  /* on_ready was called */
	char *last_spawner;              /* owned: the id of the previous connection's spawner */
	/* The ids of all spawners so far: operations that name one may outlive the connection. */
	struct strv spawners;
	usec_t last_seen;                /* see dispatcher_last_seen() */
	char *host;                      /* owned */
};

/* dispatcher.c */
void dispatcher_give_back(struct dispatcher *d, struct active_run *a /* freed */, usec_t delay);
void dispatcher_retry_in(struct dispatcher *d, usec_t delay);
void dispatcher_submit_later(struct dispatcher *d, struct op *op /* moved */);
void dispatcher_report_ended(struct dispatcher *d, const struct spawn_report *r);
void dispatcher_count_end(struct dispatcher *d); /* and starts held runs */

/* dispatcher_recovery.c */
void dispatcher_on_report(const struct spawn_report *r, void *arg); /* of the spawner, about runs */

/* dispatcher_starts.c */
void dispatcher_start_run(struct dispatcher *d, struct active_run *a);
/* The directory of the run has been filled, or cannot be; NULL: it has been. */
void dispatcher_state_filled(struct dispatcher *d, struct active_run *a, const struct err *why);
void dispatcher_end_unstarted(struct dispatcher *d, struct active_run *a,
	enum attempt_outcome outcome, const char *why);
void dispatcher_report_not_started(struct dispatcher *d, const struct spawn_report *r);
void dispatcher_run_started(struct dispatcher *d, struct active_run *a, int64_t pid,
	usec_t started_at);
/* Records the starts of runs that still run. */
int dispatcher_on_started_timer(sd_event_source *source, uint64_t usec, void *arg);

/* dispatcher_trace.c */
/* Sets the trace of the run. 'trigger': lines NAME=VALUE of its trigger; NULL: none. */
void dispatcher_trace_run(const struct dispatcher *d, struct active_run *a, const struct job_spec *spec, const char *trigger);
/* The variables of the trace context for the worker. */
void dispatcher_trace_vars(const struct dispatcher *d, const struct active_run *a, const struct job_spec *spec,
	const char *trigger, struct strv *ret);
/* The end of an attempt was recorded. */
void dispatcher_trace_end(const struct dispatcher *d, const struct active_run *a, const struct op *op);

/* dispatcher_ends.c */
#define DISPATCHER_RETRY_DELAY USEC_SEC /* after the store refused an operation */
/* The operation may succeed later. */
bool dispatcher_may_retry(enum err_kind kind);
/* Records a->end, which the caller has filled in. */
void dispatcher_end_run(struct dispatcher *d, struct active_run *a);
void dispatcher_end_unknown_run(struct dispatcher *d,
	struct active_run *a /* moved; not in active_runs */);
/* Submits the ends that the store refused again. */
void dispatcher_retry_ends(struct dispatcher *d);

/* The state of an attempt has been stored, or cannot be: submits its end. */
void dispatcher_state_saved(struct dispatcher *d, struct active_run *a);

/* dispatcher_calls.c */
struct dispatcher_call {
	const struct job_spec *spec;
	const struct strv *params; /* of a triggered run */
	const char *trigger;       /* lines NAME=VALUE of its trigger; NULL: none */
	usec_t timeout;            /* 0: none */
};
/* Notes whether the job is a call, and the paths of its secrets. */
void dispatcher_call_note(struct active_run *a, const struct job_spec *spec);
bool dispatcher_call_start(struct dispatcher *d, struct active_run *a, const struct dispatcher_call *c, struct err *e);
void dispatcher_call_cancel(struct dispatcher *d, const struct active_run *a); /* without an end */
void dispatcher_call_ack(struct dispatcher *d, int64_t run, int64_t fence);
void dispatcher_calls_watch(struct dispatcher *d);
const char *dispatcher_calls_refused(const struct dispatcher *d); /* NULL: calls can be sent */

/* dispatcher_artifacts.c */
/* Copies URL and sum of its artifact, if any. */
void dispatcher_artifact_note(struct active_run *a, const struct job_spec *spec);
/* Requests the artifact. dispatcher_start_run() is called again when it is there. */
bool dispatcher_artifact_get(struct dispatcher *d, struct active_run *a,
	const struct job_spec *spec, struct err *e);
/* Releases the artifact of each run that is removed from active_runs. */
void dispatcher_artifacts_watch(struct dispatcher *d);
/* Gives back runs that wait for an artifact. */
void dispatcher_artifacts_stop(struct dispatcher *d);
