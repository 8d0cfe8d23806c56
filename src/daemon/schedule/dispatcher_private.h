/* SPDX-License-Identifier: Apache-2.0 */
/* What the dispatcher's files share: the flow of runs, and the tie to the spawner. */
#pragma once
#include "base/log.h"
#include "core/decide/machine_conditions.h"
#include "base/err.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/active_run.h"
#include "daemon/schedule/rate_meter.h"
#include "exec/proto/spawn_client.h"
#include <systemd/sd-event.h>

struct dispatcher {
	struct dispatcher_options o;
	sd_event *ev;                    /* borrowed */
	struct active_runs active_runs;
	size_t max_running, owner_max;
	int64_t output_max;              /* bytes */
	struct machine_figures machine;
	usec_t next_due, not_before;
	bool claiming, stopped;
	struct map early_cancels;        /* run → fence: cancelled before its claim came back */
	struct map disowned;             /* run → fence: given up with this node, and left to go on */
	struct op *refused;              /* to be submitted again */
	enum warrant_policy warrants;    /* of the spawner, the last that was there */
	unsigned spawn_failures;         /* transient ones in a row */
	sd_event_source *started_timer, *hold_timer, *retry_timer;
	uint64_t ended;                  /* in all */
	sd_event_source *long_timer;     /* for the first run that will take unusually long */
	usec_t long_at;                  /* when it is set to */
	struct err claim_refused;        /* why nothing was claimed; ERR_NONE: it was */
	usec_t claim_refused_since;
	struct log_repeat not_claimed;
	struct log_repeat not_recorded;  /* ends that the store did not take */
	size_t late_ends;                /* so many, since it was first said */
	struct log_repeat not_given_back;
	struct log_repeat artifact_busy;
	struct rate_meter ends;                /* how fast runs end: claims look ahead by it */

	struct spawn_client *spawner;    /* NULL: not connected */
	struct spawn_client *connecting; /* its welcome is awaited; NULL while 'spawner' is set */
	sd_event_source *launching;      /* the end of the process that starts a spawner; NULL: there is no such process */
	pid_t launching_pid;
	bool spawner_ready;              /* connected, and what it has is known */
	bool spawner_leaves;             /* it takes no starts any more */
	bool was_open;                   /* the store has heard of us */
	bool was_ready;                  /* on_ready was called */
	unsigned connect_failures;
	char *last_spawner;              /* owned: the id of the one we had */
	struct strv spawners;            /* the ids of all we had: operations that name one may outlive the connection */
	usec_t last_seen;                /* when an engine was here before this one; 0: never */
	char *host;                      /* owned */
};

/* dispatcher.c */
void dispatcher_give_back(struct dispatcher *d, struct active_run *f /* freed */, usec_t delay);
void dispatcher_retry_in(struct dispatcher *d, usec_t delay);
void dispatcher_submit_later(struct dispatcher *d, struct op *op /* moved */);
void dispatcher_report_ended(struct dispatcher *d, const struct spawn_report *r);

/* dispatcher_starts.c */
void dispatcher_start_run(struct dispatcher *d, struct active_run *f);
void dispatcher_end_unstarted(struct dispatcher *d, struct active_run *f, enum attempt_outcome outcome, const char *why);
void dispatcher_report_not_started(struct dispatcher *d, const struct spawn_report *r);
void dispatcher_run_started(struct dispatcher *d, struct active_run *f, int64_t pid, usec_t started_at);
int dispatcher_on_started_timer(sd_event_source *source, uint64_t usec, void *arg); /* records those that still run */

/* dispatcher_ends.c */
#define DISPATCHER_RETRY_DELAY USEC_SEC /* after the store refused */
bool dispatcher_may_retry(enum err_kind kind);                   /* the store's moment, or the operation itself? */
void dispatcher_end_run(struct dispatcher *d, struct active_run *f); /* f->end is filled */
void dispatcher_end_unknown_run(struct dispatcher *d, struct active_run *f /* moved; not one of ours */);
void dispatcher_retry_ends(struct dispatcher *d);                     /* those that the store refused */

/* dispatcher_notices.c */
bool long_runs_timer_new(struct dispatcher *d, struct err *e);
void long_runs_watch(struct dispatcher *d, struct active_run *f); /* it has started */
bool dispatcher_notice_report(struct dispatcher *d, const struct spawn_report *r); /* true: it was about a notice only */

/* dispatcher_artifacts.c */
struct job_spec;
void dispatcher_artifact_note(struct active_run *f, const struct job_spec *spec); /* which artifact it uses, if any */
/* Asks for the artifact; the active_run is started again when it is there. */
bool dispatcher_artifact_get(struct dispatcher *d, struct active_run *f, const struct job_spec *spec, struct err *e);
void dispatcher_artifacts_watch(struct dispatcher *d); /* releases the artifact of each active_run that is removed */
void dispatcher_artifacts_stop(struct dispatcher *d);  /* runs that wait for an artifact are given back */

/* recovery.c */
void dispatcher_reconnect(struct dispatcher *d);
