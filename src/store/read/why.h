/* SPDX-License-Identifier: Apache-2.0 */
/* Facts from the store that explain why runs wait. */
#pragma once
#include "base/buf.h"
#include "core/job/pause.h"
#include "core/decide/why.h"
#include "store/store.h"

/* Facts that concern many jobs, read once: pauses, limits, active runs. */
struct why_context {
	struct pause_list pauses;
	struct context_limit *limits;  /* owned */
	size_t n_limits;
	struct context_tally *tallies; /* owned: active runs by owner and queue */
	size_t n_tallies;
	struct context_node *nodes;    /* owned: live nodes */
	size_t n_nodes;
	char *leader;                /* owned; NULL: no leader */
};
void why_context_done(struct why_context *w);
bool why_context_read(struct store *s, struct why_context *ret, struct err *e);
void why_context_shares(const struct why_context *w, const struct job *j, usec_t now, struct why_share *ret_queue,
	struct why_share *ret_owner); /* names are borrowed from the job */

/*
 * The nodes from the view of a job with these labels; 'node' is the id of the node that asks.
 */
struct why_nodes_text {
	struct why_nodes facts;      /* borrows the texts below and those of why_context */
	struct buf wanted, offered;
};
void why_nodes_text_done(struct why_nodes_text *t);
void why_context_nodes(const struct why_context *w, const struct strv *labels /* NULL: none */, const char *node,
	struct why_nodes_text *ret);

/* Fills in job->waiting, the first queued run of each job. */
bool why_waiting_read(struct store *s, struct job *const *v, size_t n, struct err *e);

/* Facts about one job. */
struct why_job {
	int64_t taken;            /* permits in use */
	struct run *holder;       /* owned: the run that has the first of them; NULL: none */
	usec_t bucket;            /* token bucket of its rate */
};
void why_job_done(struct why_job *w);
bool why_job_read(struct store *s, const struct job *j, struct why_job *ret, struct err *e);
