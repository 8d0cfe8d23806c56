/* SPDX-License-Identifier: Apache-2.0 */
/* The store handle, with the data that is kept between batches. */
#pragma once
#include "base/io.h"
#include "core/job/event.h"
#include "store/backend/db.h"
#include "store/backend/queries.h"
#include "store/backend/query.h"
#include "store/owner_counts.h"
#include "store/prefetch.h"
#include "store/row_ids.h"
#include "store/store.h"
#include "store/wakeup.h"

struct count;
struct job_new;
struct noted;

/*
 * How a batch excludes other engines, see batch.c. The operation with the lowest value decides for
 * its batch.
 */
enum writers_lock { WRITERS_EXCLUSIVE, WRITERS_SHARED, WRITERS_FREE };

/* The lane from which runs were last claimed, unless it has a limit. */
struct lane_last {
	char *queue; /* owned; NULL: none */
	int64_t uid, priority;
	bool stops;  /* there were pauses */
};

struct store {
	struct db *db; /* owned */
	const struct clock *clock; /* borrowed, see store_options */
	bool read_only;
	char id[RANDOM_ID_LEN + 1];
	char writer[RANDOM_ID_LEN + 5]; /* key of our row in 'writers': "2-3-" and a random id; earlier versions have no "3-", or no "2-" */
	int64_t batch;                  /* number of the last batch in that row */
	enum writers_lock writers_lock; /* of this batch */
	bool wants_exclusive;           /* this batch must be repeated with WRITERS_EXCLUSIVE */
	store_yield_fn *yield;          /* see store_set_yield(); NULL: batches are not interrupted */
	void *yield_arg;
	bool may_yield;                 /* this batch is one bulk */
	bool gave_way;                  /* ... which was interrupted */
	struct row_ids ids[2];          /* reserved numbers of jobs and of runs */
	struct prefetch prefetch;       /* reads that were sent for operations of this batch */
	struct owner_count owner_counts[32]; /* counts that were read a moment ago */
	size_t next_owner_count;        /* the entry that is replaced next */
	char *node_name;                /* owned; whose counters are changed; "" until a node is opened */
	struct count *counts;           /* owned; changes of the counters in this transaction */
	size_t n_counts;
	size_t counts_kept;             /* number of changes before the last mark */
	bool events_numbered;           /* events have the numbers of their transactions: no lock is needed, see events.c */
	char events_server[24];         /* the server's own id; "": unknown */
	struct event_list events;       /* of this batch, or of the last one until they are taken */
	struct noted *noted;            /* owned; final states of runs in this transaction */
	size_t n_noted;
	bool note_all;                  /* store_options.note_all */
	int64_t *notices_held;          /* owned; owners whose due notices wait for a slot, since the last OP_NOTICE_TAKE */
	size_t n_notices_held;
	struct {
		usec_t slot, until;
	} dense_slots[8];               /* slots that reached the maximum count, remembered until 'until' */
	size_t next_dense_slot;         /* the entry that is replaced next */
	struct {
		struct query q;
		struct job_new **v;     /* owned array of borrowed jobs, valid until the end of the batch */
		size_t n;
	} densities;                    /* counts that arrive with the reply to COMMIT */
	struct {
		int64_t uid;
		char *queue;            /* owned */
		usec_t at;
	} closed_lanes[32];                     /* lanes that a limit closed, and when that was last seen */
	size_t next_closed_lane;               /* the entry that is replaced next */
	struct {
		usec_t slot, notice, pause_end, expiry;
		usec_t at;              /* boottime; 0: never */
	} wake_kept;                    /* struct batch_wake as it was last read */
	struct lane_last lane_last;
	bool claim_idle;                /* the last claim found nothing due */
	usec_t expiry_after;            /* late runs are looked for again after this time, because this batch found none free; 0: at once */
	int64_t expiry_step;            /* late runs that the next transaction may end */
	struct claim_wakeup claim_wakeup; /* when a claim can find runs */
	int64_t segments;               /* mask of the segments whose slots wake this node; -1: all */
	usec_t leader_lease_ends;       /* boottime, as last read; 0: not read yet */
	bool leads;                     /* the leader lease was ours when it was last read */
	usec_t lease;                   /* store_options.lease */
	int64_t others;                 /* other live nodes, as last counted: they are notified of changes */
	bool older;                     /* a writer of an earlier version was active, as last read */
	bool notify;                    /* this batch notifies them */
	usec_t notified_at;             /* boottime of the last notification */
	bool notify_pending;            /* a change since then was not notified */
	bool events_unseen;             /* other nodes were not notified of the last events */
	usec_t start_notified_at;       /* boottime of the last notification about a start */
	int64_t *moved;                 /* owned; runs that started or ended and are not in 'run_moves' yet */
	size_t n_moved;
	usec_t moves_at;                /* boottime of the last row */
	int64_t moves_written;          /* rows */
	_Atomic int64_t term;           /* a lower term in the store means lost commits; set by any thread */
	int64_t term_checked;           /* term that was last read on this connection */
	bool gone_back;                 /* a lower term was found */
};

/* As store_open(), with a backend of the caller's choice; tests use one that fails on purpose. */
bool store_open_with(const struct db_ops *ops, const struct db_options *o, struct store **ret, struct err *e);
bool store_reconnect(struct store *s, int wait_ms, struct err *e);
bool store_give_way(struct store *s, struct err *e); /* true, with an error: the batch ends here; see store_set_yield() */
