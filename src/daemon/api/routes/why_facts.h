/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that explain why runs wait. */
#pragma once
#include "core/decide/machine_conditions.h"
#include "core/decide/why.h"
#include "core/job/event.h"
#include "store/read/why.h"

struct request;
struct zone_cache;

/* State of the daemon at the time of the request. Copied on the loop, used on the reader thread. */
struct why_live {
	bool bound;       /* the caller is not an administrator */
	usec_t now;
	struct why_node node;
	const char *node_id; /* borrowed */
	int64_t owner_max; /* runs of one owner on this node; 0: no limit */
	struct machine_figures machine;
};
void why_facts_live(const struct request *r, struct why_live *ret);

/* Sets the reason why a listed job or run waits, as far as its row shows. */
void why_facts_mark_job(const struct why_context *w, const struct why_live *live, struct job *j);
bool why_facts_mark_runs(struct store *s, const struct why_live *live, struct run *const *v,
	size_t n, struct err *e);

/* Everything about one job. */
struct why_facts_job {
	struct why_context world;
	struct why_job job;
	struct run *open;           /* owned: the run to explain; NULL: none */
	char *error;                /* owned: of the last attempt of 'open'; NULL: none */
	/* end of the pause that applies to the job; 0: no pause, USEC_NEVER: no end */
	usec_t pause_until;
	usec_t pause_from;           /* beginning of the first future pause; USEC_NEVER: none */
	struct event_list ended;    /* the event of its cancellation or removal, at most one */
	struct job_spec spec;
	struct schedule_set *set;   /* owned; NULL: the schedule cannot be parsed */
	struct why_reason now;
	struct why_reason held;     /* the obstacle to all runs of the job; WHY_NONE: none */
};
/* The error of the last attempt of a run, to be freed; NULL: none, or the run succeeded. */
bool why_facts_last_error(struct store *s, const struct run *r, char **ret, struct err *e);
void why_facts_job_done(struct why_facts_job *l);
bool why_facts_read(struct store *s, const struct why_live *live, struct zone_cache *zones,
	const struct job *j, struct why_facts_job *ret, struct err *e);
