/* SPDX-License-Identifier: Apache-2.0 */
/* Finds history that may be deleted, in small steps, so that it can be archived before. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct store;

/*
 * Runs of a live job are kept for 'age', and at least the newest 'runs' of them. An ended job is
 * kept for 'age'.
 */
struct prune_rule {
	usec_t age;
	int64_t runs;
	usec_t dead_age; /* of dead letters */
};

struct prune_candidates {
	int64_t *runs, *jobs; /* owned: ids */
	size_t n_runs, n_jobs;
};
void prune_candidates_done(struct prune_candidates *l);

#define PRUNE_OWNERS 32 /* maximum number of owners in one pass */

/* The progress of a pass; all zero for a new one. */
struct prune_pass {
	usec_t job_at, slot;
	int64_t job, run;
	bool done;
	/* of a pass for a budget */
	bool has_owner;
	int64_t owner;        /* whose history is deleted now */
	bool removed_done;    /* its removed jobs were processed */
	int64_t spent[PRUNE_OWNERS]; /* owners without further candidates */
	size_t n_spent;
};

/* The next candidates; advances the pass. The list may be empty before the pass is done. */
bool prune_candidates_find(struct store *s, const struct prune_rule *rule, usec_t now, struct prune_pass *pass,
	struct prune_candidates *ret, struct err *e);
/* Limits in bytes; 0: no limit. */
struct owner_budget {
	int64_t store;     /* of the whole SQLite file; each owner has an equal share */
	int64_t per_owner; /* of one owner, except root */
};
/* Selects the next owner over its budget: sets has_owner and owner of the pass. */
bool prune_candidates_next_owner(struct store *s, const struct owner_budget *b, struct prune_pass *pass, struct err *e);
/*
 * Candidates of the owner of the pass, oldest first, of any age: removed and ended jobs with their
 * runs, and all runs of live jobs except the newest of each. Dead letters and ended jobs with a key
 * are kept.
 */
bool prune_candidates_of_owner(struct store *s, struct prune_pass *pass, struct prune_candidates *ret, struct err *e);
void prune_candidates_owner_done(struct prune_pass *pass); /* its owner has no further candidates */

struct kept_output {
	int64_t run, fence, attempt, bytes;
	int64_t uid; /* of the owner */
};
bool prune_candidates_outputs(struct store *s, int64_t uid, size_t n, struct kept_output *ret, size_t *ret_n, struct err *e);

struct store_sizes {
	int64_t bytes;   /* used by the store; 0: unknown */
	int64_t outputs; /* bytes of kept output files */
	int64_t most_uid;    /* the owner with the most kept output */
	int64_t most, second; /* bytes of this owner, and of the owner with the second most */
};
bool store_sizes(struct store *s, struct store_sizes *ret, struct err *e);
