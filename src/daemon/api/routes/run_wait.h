/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one run for a request, or waits until it ends. */
#pragma once
#include "core/job/run.h"
#include "daemon/api/routes/why_facts.h"
#include "daemon/api/store_read.h"
#include "store/lists.h"
#include "store/store.h"

struct request;

struct run_wait_read {
	struct store_read q;
	int64_t id;
	struct why_live live;
	struct run *run;               /* results, owned */
	struct attempt_list attempts;
};

/* Calls 'then' on the loop with the results; 'q->out' has the run with its attempts as JSON. */
void run_wait_read_start(struct request *r, int64_t id,
	void (*then)(struct request *r, struct store_read *q));
void run_wait_write_attempts(struct buf *out, const struct attempt_list *l); /* as a JSON array */

/* Responds with the run when it has ended, or after the seconds given by 'wait'. */
void run_wait_start(struct request *r, int64_t id);
