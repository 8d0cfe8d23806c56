/* SPDX-License-Identifier: Apache-2.0 */
/* Puts jobs of any owner into a store that no daemon uses, as a daemon that serves many users would have them. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_WORD "@SLOT@"

static int usage(void)
{
	fprintf(stderr, "usage: fill_store STORE UID OWNER COUNT QUEUE PRIORITY RUN_AT NEXT_SLOT SPEC [BATCHES STEP]\n"
			"times in microseconds since 1970, 0 for none\n"
			"With BATCHES, COUNT jobs are added so many times, in a transaction each. NEXT_SLOT grows by STEP from\n"
			"batch to batch. It replaces the word " SLOT_WORD " in SPEC.\n");
	return 2;
}

/* Returns the spec with the time of the slot in place of the word. */
static char *spec_of(const char *spec, usec_t slot)
{
	AUTO_DONE(buf) b = {};
	const char *at = strstr(spec, SLOT_WORD);
	char text[RFC3339_MAX];

	if (!at)
		return xstrdup(spec);
	buf_add(&b, spec, (size_t)(at - spec));
	buf_str(&b, rfc3339_format(slot, text));
	buf_str(&b, at + strlen(SLOT_WORD));
	return buf_steal(&b);
}

static bool add_batch(struct store *s, const struct job_new *model, size_t count, struct err *e)
{
	AUTO(op) *op = op_new(OP_JOB_BULK, NULL, NULL);
	struct batch_wake wake;

	job_bulk_op(op)->n = count;
	job_bulk_op(op)->v = xcalloc(count, sizeof(*job_bulk_op(op)->v));
	for (size_t i = 0; i < count; i++)
		job_bulk_op(op)->v[i] = *model;
	if (!batch_apply(s, &op, 1, &wake, e))
		return false;
	if (!op->ok) {
		*e = op->err;
		return false;
	}
	for (size_t i = 0; i < count; i++)
		printf("%lld\n", (long long)job_bulk_op(op)->v[i].id);
	return true;
}

int main(int argc, char **argv)
{
	AUTO(store) *s = NULL;
	struct store_options o = {};
	struct job_new model = {};
	struct err e = {};
	int64_t uid, count, batches = 1, step = 0;

	if ((argc != 10 && argc != 12) || !text_parse_int(argv[2], 0, UINT32_MAX, &uid) || !text_parse_int(argv[4], 1, 1000000, &count) ||
	    !text_parse_int(argv[6], -1000, 1000, &model.priority) || !text_parse_int(argv[7], 0, INT64_MAX, &model.run_at) ||
	    !text_parse_int(argv[8], 0, INT64_MAX, &model.next_slot) ||
	    (argc == 12 && (!text_parse_int(argv[10], 1, INT32_MAX, &batches) || !text_parse_int(argv[11], 0, USEC_DAY, &step))))
		return usage();
	o.where = argv[1];
	model.uid = (uint32_t)uid;
	model.owner = argv[3];
	model.queue = argv[5];
	model.now = clock_now(&clock_system);
	model.policy.permits = 1;
	bool ok = store_open(&o, &s, &e);
	for (int64_t i = 0; ok && i < batches; i++, model.next_slot += step) {
		AUTO_TEXT spec = spec_of(argv[9], model.next_slot);

		model.spec = spec;
		ok = add_batch(s, &model, (size_t)count, &e);
	}
	if (!ok)
		fprintf(stderr, "fill_store: %s\n", e.msg);
	return ok ? 0 : 1;
}
