/* SPDX-License-Identifier: Apache-2.0 */
/* Puts together what the store and the loop know of the reasons why runs wait. */
#pragma once
#include "core/decide/machine_conditions.h"
#include "core/decide/why.h"
#include "core/job/event.h"
#include "store/read/why.h"

struct request;
struct zone_cache;

/* How things are at the moment of the request; taken on the loop, used on the reader's thread. */
struct why_live {
	bool bound;       /* an ordinary user asks */
	usec_t now;
	struct why_node node;
	const char *node_id; /* borrowed */
	int64_t owner_max; /* runs of one owner at a time here; 0: any number */
	struct machine_figures machine;
};
void why_facts_live(const struct request *r, struct why_live *ret);

/* Writes into a job of a list, or a run, what it waits for, as far as its row tells. */
void why_facts_mark_job(const struct why_context *w, const struct why_live *live, struct job *j);
bool why_facts_mark_runs(struct store *s, const struct why_live *live, struct run *const *v, size_t n, struct err *e);

/* All about one job. */
struct why_facts_job {
	struct why_context world;
	struct why_job job;
	struct run *open;           /* owned: what it is about now; NULL: no run is */
	char *error;                /* owned: of the last attempt of 'open'; NULL: none */
	usec_t pause_until;         /* the end of the pause that covers the job; 0: none does, USEC_NEVER: it has no end */
	usec_t pause_from;           /* the first pause that is ordered for later begins; USEC_NEVER: there is none */
	struct event_list ended;    /* its cancellation or removal, at most one */
	struct job_spec spec;
	struct schedule_set *set;   /* owned; NULL: its schedule cannot be read */
	struct why_reason now;
	struct why_reason held;     /* what keeps every run from starting; WHY_NONE: nothing */
};
/* The error of the last attempt of a run, to be freed; NULL: there is none, or the run succeeded. */
bool why_facts_last_error(struct store *s, const struct run *r, char **ret, struct err *e);
void why_facts_job_done(struct why_facts_job *l);
bool why_facts_read(struct store *s, const struct why_live *live, struct zone_cache *zones, const struct job *j,
	struct why_facts_job *ret, struct err *e);
