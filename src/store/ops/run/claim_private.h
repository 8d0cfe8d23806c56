/* SPDX-License-Identifier: Apache-2.0 */
/* Data of a claim; private to the claim files. */
#pragma once
#include "base/map.h"
#include "core/decide/claim.h"
#include "store/backend/query.h"
#include "store/ops/run/claims.h"
#include "store/set.h"
#include "store/store_private.h"

/* The limits and the active runs of a queue or an owner. */
struct share {
	char *key;              /* owned: name of the queue, or uid */
	int64_t running, weight;
	struct rate rate;
	usec_t bucket;
	bool taken;             /* the bucket has changed */
	bool elsewhere;         /* the claim of another node has locked the limit */
	int64_t active, here;   /* claimed and running runs: everywhere, on this node */
};

/* The active runs of one owner in one queue. */
struct tally {
	int64_t uid, n;
	char *queue; /* owned */
};

/* A due run, and the decision about it. */
struct candidate {
	int64_t id, permit;          /* number of its permit; 0: none */
	usec_t due_at, created_at;
	struct claim_facts facts;
	char *held_by;               /* owned */
	bool gated;
	struct lane *lane;
	struct job_now *job;
	struct claim_verdict verdict;
	struct claimed row;          /* as it will be when it is claimed; run NULL: not read */
};

/* A run that has an overlap permit. */
struct permit_holder {
	int64_t permit, run, fence;
	enum run_state state;
	struct candidate *here;      /* the candidate of this claim that got the permit; NULL: it had it before */
};
struct job_now {
	int64_t id, taken, waiting;
	struct permit_holder *holders; /* owned; read only if permits are in use */
	size_t n_holders;
	bool permits_known, gate_known;
	bool skip_waiting;           /* a newer run replaces the waiting ones */
	struct candidate *held;      /* candidate of this claim that waits to replace the active runs */
	bool unmet, unknown;
	const char *withheld;        /* static; NULL: its slots run */
	usec_t unmet_slot;           /* the newest slot that waits for a condition */
	struct rate rate;
	usec_t bucket, reserved;     /* reserved: as if the runs that wait for the rate had started */
	bool bucket_taken;
};

/* The queued runs of one queue, owner and priority. */
struct lane {
	char *queue;                 /* owned */
	int64_t uid;
	int64_t priority;
	usec_t front;                /* when the first undecided run is due; USEC_NEVER: there is none */
	struct share *of_queue, *of_owner;
	struct tally *tally;
	struct candidate **v;        /* owned; read so far */
	size_t n, next;
	usec_t last_due;             /* the last one read */
	int64_t last_id;
	bool read_all;               /* no other run of it is due */
	usec_t then;                 /* with read_all: when its first later run is due */
	size_t deferred;             /* decided without a start */
	usec_t closed_at;            /* when a limit was last seen to close it; 0: not recently */
};

struct claim_pause {
	char *scope, *key, *spared;  /* owned */
	int64_t uid;
	usec_t at, until;            /* until 0: no end */
	bool past;                   /* ended, even if this node's clock is behind */
	bool later;                  /* in force from 'at' on; others are in force now, even if this node's clock is behind */
};
void claim_pause_done(struct claim_pause *p);
void claim_pause_read(struct claim_pause *p, struct query *q); /* scope to until */
/*
 * Reads which of these jobs (a JSON array) have the tag that the pause names: its key, or the tag
 * that it spares.
 */
bool claim_pause_tagged(struct store *s, const struct claim_pause *p, const char *jobs, struct map *ret, struct err *e);
bool claim_pause_covers(const struct claim_pause *p, const struct map *tagged, int64_t job);

/*
 * The runs of the lane that was last claimed from. On a server they are locked and read in the same
 * round trip as the lanes.
 */
struct claim_prefetch {
	struct query hold, held, rows;
	char *queue;                 /* owned; NULL: nothing was prefetched */
	int64_t uid, priority;
	size_t n;                    /* wanted runs */
	bool stops;                  /* their pauses were read */
};

struct claim {
	struct store *s;
	struct op_claim *c;
	struct share **queues;       /* owned */
	size_t n_queues;
	struct map owners;           /* uid → owned struct share */
	struct tally **tallies;      /* owned; by uid and queue */
	size_t n_tallies;
	struct claim_pause *pauses;  /* owned; of scopes: in force, or ended with slots inside that are not planned yet */
	size_t n_pauses;
	bool past;                   /* there are past pauses, of scopes or of single jobs */
	bool later;                  /* there are pauses of single jobs that begin later */
	bool passed;                 /* runs were passed over because another node holds their job or limit */
	bool unsure;                 /* due runs wait for the clock */
	struct lane *lanes;          /* owned; by queue, owner and priority */
	size_t n_lanes;
	struct claim_lane *views;    /* owned; one for each */
	struct map jobs;             /* job → owned struct job_now */
	struct candidate **decided;  /* owned array; the candidates belong to their lanes */
	size_t n_decided, started;
	struct set ended;            /* {run, state, reason}: runs that were replaced while waiting for a retry, or are inside a past pause */
	struct map gone;             /* the runs of 'ended', which may be candidates as well */
	struct set replaced;         /* active runs that must end */
	struct claim_prefetch prefetch;
};
void claim_done(struct claim *c);

/* Queries that are sent at once on a server. */
struct claim_reads {
	struct query node, lanes, limits, active, pauses;
};
void claim_reads_done(struct claim_reads *r);

/* claim_reads.c */
bool claim_reads_send(struct claim *c, struct claim_reads *r, struct err *e);
bool claim_read(struct claim *c, struct claim_reads *r, struct err *e); /* lanes, limits, active runs, pauses */
void claim_share_free(struct share *h);

/* claim_lanes.c */
bool claim_next_lane(struct claim *c, struct lane **ret);    /* the lane that is served next; false: none is open */
void claim_count_active(struct lane *l, int64_t n);          /* adds n to the active runs of that lane */
void claim_take_rates(struct lane *l, usec_t now);
void claim_return_rates(struct lane *l);                     /* undoes claim_take_rates() */
void claim_next_wakeup(struct claim *c);                     /* sets when the next claim can find runs */
bool claim_write_buckets(struct claim *c, struct err *e);

/* claim_past.c */
bool claim_drop_past(struct claim *c, struct err *e);        /* deletes past pauses that are not needed any more */

/* claim_facts.c */
void claim_candidate_free(struct candidate *r);
bool claim_lane_read(struct claim *c, struct lane *l, size_t n, struct err *e); /* the next candidates, with all facts */
void claim_add_candidate(struct lane *l, struct candidate *r);
struct candidate *claim_candidate_read(struct claim *c, struct lane *l, struct query *q);
bool claim_pauses_matter(const struct claim *c);

/* claim_results.c */
bool claim_previous_read(struct store *s, struct claim_list *l, struct err *e); /* the last attempts of runs that are retried */

/* claim_hold.c */
size_t claim_chunk(size_t room, size_t lanes); /* how many runs of each are read first */
bool claim_prefetch_send(struct claim *c, struct err *e);
void claim_prefetch_forget(struct claim *c); /* if the prefetched runs were not used */
void claim_prefetch_done(struct claim_prefetch *p);
bool claim_hold_runs(struct claim *c, struct lane *l, size_t n, struct err *e);
