/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What history may go: found a little at a time by reading, so that it can be archived before it is
 * deleted.
 */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct store;

/*
 * What is kept: a live job's runs for 'age' or the newest 'runs', whichever is more; an ended job
 * for 'age'.
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

#define PRUNE_OWNERS 32 /* looked at in one pass */

/* How far a pass has come; zeroed for a new one. */
struct prune_pass {
	usec_t job_at, slot;
	int64_t job, run;
	bool done;
	/* of a budget */
	bool has_owner;
	int64_t owner;        /* whose history goes now */
	bool removed_done;    /* its removed jobs were looked at */
	int64_t spent[PRUNE_OWNERS]; /* owners that have given what they have */
	size_t n_spent;
};

/* The next few that may go, and the pass moved on; an empty list may come before it is done. */
bool prune_candidates_find(struct store *s, const struct prune_rule *rule, usec_t now, struct prune_pass *pass,
	struct prune_candidates *ret, struct err *e);
/* Bytes; 0: none. */
struct owner_budget {
	int64_t store;     /* of the whole SQLite file; each owner has an equal share */
	int64_t per_owner; /* of one owner but root */
};
/* Whose history goes next: has_owner and owner of the pass. */
bool prune_candidates_next_owner(struct store *s, const struct owner_budget *b, struct prune_pass *pass, struct err *e);
/*
 * The rows that the owner of the pass can give, oldest first, whatever their age: removed and ended
 * jobs with their runs, and the runs of live jobs but the newest of each. Dead letters, and ended
 * jobs with a key, stay.
 */
bool prune_candidates_of_owner(struct store *s, struct prune_pass *pass, struct prune_candidates *ret, struct err *e);
void prune_candidates_owner_done(struct prune_pass *pass); /* its owner has no more to give */

struct kept_output {
	int64_t run, fence, attempt, bytes;
	int64_t uid; /* of the owner */
};
bool prune_candidates_outputs(struct store *s, int64_t uid, size_t n, struct kept_output *ret, size_t *ret_n, struct err *e);

struct store_sizes {
	int64_t bytes;   /* in use by the store; 0: the engine does not tell */
	int64_t outputs; /* kept by the spawner */
	int64_t most_uid;    /* the owner who has most of them */
	int64_t most, second; /* his, and of who has most after him */
};
bool store_sizes(struct store *s, struct store_sizes *ret, struct err *e);
