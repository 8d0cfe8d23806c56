/* SPDX-License-Identifier: Apache-2.0 */
/* Puts jobs of any owner into a store that no daemon uses, as a daemon that serves many users would have them. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/store.h"
#include <stdio.h>
#include <stdlib.h>

static int usage(void)
{
	fprintf(stderr, "usage: fill_store STORE UID OWNER COUNT QUEUE PRIORITY RUN_AT NEXT_SLOT SPEC\n"
			"times in microseconds since 1970, 0 for none\n");
	return 2;
}

int main(int argc, char **argv)
{
	AUTO(store) *s = NULL;
	AUTO(op) *op = op_new(OP_JOB_BULK, NULL, NULL);
	struct store_options o = {};
	struct job_new model = {};
	struct batch_wake wake;
	struct err e = {};
	int64_t uid, count;

	if (argc != 10 || !text_parse_int(argv[2], 0, UINT32_MAX, &uid) || !text_parse_int(argv[4], 1, 1000000, &count) ||
	    !text_parse_int(argv[6], -1000, 1000, &model.priority) || !text_parse_int(argv[7], 0, INT64_MAX, &model.run_at) ||
	    !text_parse_int(argv[8], 0, INT64_MAX, &model.next_slot))
		return usage();
	o.where = argv[1];
	model.uid = (uint32_t)uid;
	model.owner = argv[3];
	model.queue = argv[5];
	model.spec = argv[9];
	model.now = clock_now(&clock_system);
	model.policy.permits = 1;
	job_bulk_op(op)->n = (size_t)count;
	job_bulk_op(op)->v = xcalloc(job_bulk_op(op)->n, sizeof(*job_bulk_op(op)->v));
	for (size_t i = 0; i < job_bulk_op(op)->n; i++)
		job_bulk_op(op)->v[i] = model;
	if (!store_open(&o, &s, &e) || !batch_apply(s, &op, 1, &wake, &e)) {
		fprintf(stderr, "fill_store: %s\n", e.msg);
		return 1;
	}
	if (!op->ok) {
		fprintf(stderr, "fill_store: %s\n", op->err.msg);
		return 1;
	}
	for (size_t i = 0; i < job_bulk_op(op)->n; i++)
		printf("%lld\n", (long long)job_bulk_op(op)->v[i].id);
	return 0;
}
