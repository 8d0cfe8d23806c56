/* SPDX-License-Identifier: Apache-2.0 */
/* Types that store_thread.c and store_writer.c share. */
#pragma once
#include "base/err.h"
#include "core/job/event.h"
#include "daemon/loop/bulk_credit.h"
#include "daemon/loop/store_queues.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/batch.h"
#include <pthread.h>
#include <systemd/sd-event.h>

/* A reading thread with its own connection. */
struct reader {
	struct store_thread *t;
	struct store *store; /* NULL: opened for the first task */
	pthread_t thread;
	bool runs, works;
	pthread_cond_t wanted;
	struct fair_queue tasks; /* guarded by the lock of 't' */
};

struct store_thread {
	struct store_thread_options o;
	struct store *writer;
	pthread_t writer_thread;
	bool writer_runs;
	struct reader short_reads, long_reads;
	int done_fd;
	sd_event_source *done_source;

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t write_wanted;
	bool stopping;
	struct op_queue waiting, done;
	struct task_queue reads_done;
	bool bulk_turn;          /* the next batch is a bulk */
	size_t claims;           /* waiting operations that start due runs */
	struct bulk_credit bulk_credit; /* of the writer thread */
	size_t in_batch, urgent; /* urgent: waiting operations that are not patient */
	usec_t last_commit;
	/* monotonic: time of the next empty batch while fails_since is set */
	usec_t probe_at;
	usec_t fails_since;      /* boottime of the first failed batch; 0: the last one succeeded */
	usec_t answered;         /* boottime of the last successful batch */
	char why[512];           /* error of the last failed batch */
	struct batch_wake wake;
	struct event_list events; /* committed and not delivered yet */
	bool woken, fatal;
	struct err fatal_err;
};

void store_thread_signal(struct store_thread *t); /* results are ready for the loop */
void store_ops_fail(struct op **ops, size_t n, const struct err *e);

/* ---- the writer thread ---- */

void *store_writer_main(void *arg);    /* the thread; takes the store_thread */
bool store_writer_gives_way(void *arg); /* store_yield_fn, on that thread; the same */
