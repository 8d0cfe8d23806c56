/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at one run for a request, once or until it has moved far enough. */
#pragma once
#include "core/job/run.h"
#include "daemon/api/store_read.h"
#include "daemon/api/routes/why_facts.h"
#include "store/store.h"

struct request;

struct run_wait_read {
	struct question q;
	int64_t id;
	struct why_live live;
	struct run *run;               /* results, owned */
	struct attempt_list attempts;
};

/* 'then' on the loop with the results; 'q->out' has the run with its attempts as JSON text. */
void run_wait_read_start(struct request *r, int64_t id, void (*then)(struct request *r, struct question *q));
