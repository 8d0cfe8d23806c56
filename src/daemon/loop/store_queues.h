/* SPDX-License-Identifier: Apache-2.0 */
/* First-in, first-out queues of operations and of completed reads. The caller locks them. */
#pragma once
#include <stddef.h>

struct fair_item;
struct op;
struct read_task;

struct op_queue {
	struct op *first, **last;
	size_t n;
};

struct task_queue {
	struct fair_item *first, **last;
};

void op_queue_init(struct op_queue *q);
void op_queue_push(struct op_queue *q, struct op *op);
void op_queue_push_first(struct op_queue *q, struct op *op);
struct op *op_queue_pop(struct op_queue *q); /* NULL: empty */

void task_queue_init(struct task_queue *q);
void task_queue_push(struct task_queue *q, struct read_task *t);
struct read_task *task_queue_pop(struct task_queue *q); /* NULL: empty */
