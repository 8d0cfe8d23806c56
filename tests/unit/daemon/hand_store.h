/* SPDX-License-Identifier: Apache-2.0 */
/* A replacement of the store threads: submitted operations wait until the test applies them to a real store. */
#pragma once
#include "base/err.h"
#include "store/ops/op.h"
#include "unit/unit.h"
#include <stdbool.h>
#include <systemd/sd-event.h>

/* Replaces the struct of store_thread.c. */
struct store_thread {
	char dir[64];        /* temporary, with the store in it */
	sd_event *ev;
	struct store *store;
	struct op *ops[32];
	size_t n;
	enum err_kind fails; /* every operation fails with this; ERR_NONE: none fails */
	usec_t next_due;     /* after the last operation */
};

bool hand_open(struct store_thread *t);
void hand_close(struct store_thread *t); /* frees everything and removes the directory */

void hand_apply(struct store_thread *t, struct op *op);                 /* ignores 'fails' */
struct op *hand_take(struct store_thread *t, enum op_kind kind);        /* removes the first of this kind from the queue; NULL: none */
struct op *hand_await(struct store_thread *t, enum op_kind kind);       /* the same, but runs the loop for up to 10 s until there is one */
void hand_answer(struct store_thread *t, struct op *op /* moved */);    /* applies it, or fails it, and calls on_done */
void hand_serve(struct store_thread *t);                                /* answers all operations in the queue */
