/* SPDX-License-Identifier: Apache-2.0 */
/* A replacement of store_thread.c: the test applies operations to a real store by hand. */
#include "base/text.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/batch.h"
#include "store/ops/op.h"
#include "store/store.h"
#include "unit/daemon/hand_store.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void store_thread_submit(struct store_thread *t, struct op *op)
{
	assert_true(t->n < ELEMENTS(t->ops));
	t->ops[t->n++] = op;
}

const char *store_thread_store_id(const struct store_thread *t)
{
	(void)t;
	return "store";
}

void store_thread_read(struct store_thread *t, struct read_task *task)
{
	task->work(t->store, task);
	task->done(task);
}

void store_thread_expect_term(struct store_thread *t, int64_t term)
{
	(void)t;
	(void)term;
}

bool hand_open(struct store_thread *t)
{
	AUTO_TEXT path = NULL;
	struct err e = {};

	snprintf(t->dir, sizeof(t->dir), "%s/hand-store-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(t->dir) || sd_event_new(&t->ev) < 0)
		return false;
	path = xprintf("%s/jobs.db", t->dir);
	if (store_open(&(struct store_options){.where = path}, &t->store, &e))
		return true;
	print_error("%s\n", e.msg);
	return false;
}

void hand_close(struct store_thread *t)
{
	static const char *const files[] = {"jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db.reserve", "jobs.db-reserve"};

	for (size_t i = 0; i < t->n; i++)
		op_free(t->ops[i]);
	store_free(t->store);
	sd_event_unref(t->ev);
	for (size_t i = 0; i < ELEMENTS(files); i++) {
		AUTO_TEXT path = xprintf("%s/%s", t->dir, files[i]);

		unlink(path);
	}
	rmdir(t->dir);
}

void hand_apply(struct store_thread *t, struct op *op)
{
	struct batch_wake wake = {};
	struct err e = {};

	if (!batch_apply(t->store, &op, 1, &wake, &e))
		fail_msg("%s", e.msg);
	t->next_due = wake.next_due;
}

struct op *hand_take(struct store_thread *t, enum op_kind kind)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->ops[i]->kind == kind) {
			struct op *op = t->ops[i];

			t->n--;
			for (; i < t->n; i++)
				t->ops[i] = t->ops[i + 1];
			return op;
		}
	return NULL;
}

struct op *hand_await(struct store_thread *t, enum op_kind kind)
{
	struct op *op = NULL;

	for (int i = 0; i < 1000 && !(op = hand_take(t, kind)); i++)
		sd_event_run(t->ev, 10 * USEC_MSEC);
	assert_non_null(op);
	return op;
}

void hand_answer(struct store_thread *t, struct op *op)
{
	assert_non_null(op);
	if (t->fails) {
		op->ok = false;
		op->err = (struct err){.kind = t->fails, .msg = "set by the test"};
	} else {
		hand_apply(t, op);
	}
	if (op->on_done)
		op->on_done(op, op->arg);
	else
		op_free(op);
}

void hand_serve(struct store_thread *t)
{
	while (t->n > 0)
		hand_answer(t, hand_take(t, t->ops[0]->kind));
}
