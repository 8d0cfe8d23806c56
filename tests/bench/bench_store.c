/* SPDX-License-Identifier: Apache-2.0 */
/* Measures complete runs (add, claim, start, end) in the store by batch size, compared with bare commits. */
#include "base/text.h"
#include "bench/measure.h"
#include "core/job/run.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "store/read/list/list_runs.h"
#include "store/store.h"
#include <err.h>
#include <stdio.h>
#include <string.h>

#define MOST 1000
#define NODE "bench-node"

static void apply(struct store *s, struct op **ops, size_t n)
{
	struct batch_wake wake;
	struct err e = {};

	if (!batch_apply(s, ops, n, &wake, &e))
		errx(1, "%s", e.msg);
	for (size_t i = 0; i < n; i++)
		if (!ops[i]->ok)
			errx(1, "%s", ops[i]->err.msg);
}

static void free_all(struct op **ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		op_free(ops[i]);
}

static struct op *op_of(enum op_kind kind)
{
	return op_new(kind, NULL, NULL);
}

/* Add, claim, start and end of 'n' runs: four batches. */
static void live(struct store *s, size_t n, usec_t now)
{
	struct op *ops[MOST], *claim = op_of(OP_CLAIM);

	for (size_t i = 0; i < n; i++) {
		ops[i] = op_of(OP_JOB_ADD);
		job_add_op(ops[i])->job = (struct job_new){.uid = 1000, .owner = "bench", .now = now, .run_at = now,
			.spec = "{\"command\":[\"true\"],\"schedule\":[\"now\"],\"tz\":\"UTC\",\"env\":{\"A\":\"b\"}}"};
	}
	apply(s, ops, n);
	free_all(ops, n);
	op_fill(claim_op(claim), .node = NODE, .now = now, .room = n);
	apply(s, &claim, 1);
	for (size_t i = 0; i < n; i++) {
		const struct run *r = claim_op(claim)->claimed.v[i].run;

		ops[i] = op_of(OP_STARTED);
		op_fill(run_started_op(ops[i]), .node = NODE, .spawner = "s", .run = r->id, .fence = r->fence,
			.attempt = 1, .pid = 4711, .started_at = now);
	}
	apply(s, ops, n);
	free_all(ops, n);
	for (size_t i = 0; i < n; i++) {
		const struct run *r = claim_op(claim)->claimed.v[i].run;

		ops[i] = op_of(OP_ENDED);
		op_fill(run_ended_op(ops[i]), .node = NODE, .state = RUN_SUCCEEDED,
			.attempt = {.run = r->id, .number = 1, .fence = r->fence, .pid = 4711, .started_at = now,
				.ended_at = now + 9, .outcome = ATTEMPT_SUCCEEDED});
	}
	apply(s, ops, n);
	free_all(ops, n);
	op_free(claim);
}

static double lives_per_second(struct store *s, size_t n, double seconds)
{
	static usec_t now = INT64_C(1800000000000000);
	double start = bench_now();
	size_t done = 0;

	while (bench_now() - start < seconds) {
		live(s, n, now++);
		done += n;
	}
	return (double)done / (bench_now() - start);
}

static double page_milliseconds(struct store *s, const struct run_filter *f)
{
	double start = bench_now();

	for (int i = 0; i < 20; i++) {
		struct run_list page = {};
		struct err e = {};

		if (!list_runs_page(s, f, &page, &e))
			errx(1, "%s", e.msg);
		run_list_done(&page);
	}
	return (bench_now() - start) * 1000 / 20;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1, 10, 100, 1000};
	const char *dir = argc > 1 ? argv[1] : ".";
	AUTO_TEXT file = xprintf("%s/bench-store.db", dir);
	struct store_options o = {.where = argc > 2 ? argv[2] : file};
	struct op *node = op_of(OP_NODE_OPEN);
	struct store *s = NULL;
	struct err e = {};

	if (!store_open(&o, &s, &e))
		errx(1, "%s", e.msg);
	op_fill(node_open_op(node), .node = NODE, .name = "bench", .spawner = "s", .host = "h");
	apply(s, &node, 1);
	op_free(node);
	printf("%8s %14s %14s %8s\n", "batch", "bare rows/s", "runs/s", "ratio");
	for (size_t i = 0; i < ELEMENTS(sizes); i++) {
		double bare = limit_commit(dir, (int)sizes[i], 2), ours = lives_per_second(s, sizes[i], 3);

		printf("%8zu %14.0f %14.0f %8.2f\n", sizes[i], bare, ours, ours / bare);
	}
	printf("page of 100 runs: newest %.2f ms, of an owner %.2f ms, failed %.2f ms, of a job %.2f ms\n",
		page_milliseconds(s, &(struct run_filter){.uid = -1, .limit = 100}),
		page_milliseconds(s, &(struct run_filter){.uid = 1000, .limit = 100}),
		page_milliseconds(s, &(struct run_filter){.uid = -1, .states = 1u << RUN_FAILED, .limit = 100}),
		page_milliseconds(s, &(struct run_filter){.uid = -1, .job = 5, .limit = 100}));
	store_free(s);
	return 0;
}
