/* SPDX-License-Identifier: Apache-2.0 */
/* A real store whose thread is the test's hand: what the engine submits waits until the test has it done. */
#pragma once
#include "base/err.h"
#include "store/ops/op.h"
#include "unit/unit.h"
#include <stdbool.h>
#include <systemd/sd-event.h>

/* In the place of the daemon's own. */
struct store_thread {
	char dir[64];        /* the store's, and the test's */
	sd_event *ev;
	struct store *store;
	struct op *ops[32];
	size_t n;
	enum err_kind fails; /* with this, whatever it is asked; ERR_NONE: it works */
	usec_t next_due;     /* as the last operation left it */
};

bool hand_open(struct store_thread *t);
void hand_close(struct store_thread *t); /* the store, the loop, what waits and the directory */

void hand_apply(struct store_thread *t, struct op *op);                 /* at once, whatever 'fails' says */
struct op *hand_take(struct store_thread *t, enum op_kind kind);        /* the first of this kind that waits, taken out; NULL: none does */
struct op *hand_await(struct store_thread *t, enum op_kind kind);       /* ... runs the loop until there is one, ten seconds at most */
void hand_answer(struct store_thread *t, struct op *op /* moved */);    /* does it, or fails it, and says so */
void hand_serve(struct store_thread *t);                                /* all that waits */
