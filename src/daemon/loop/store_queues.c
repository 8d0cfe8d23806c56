/* SPDX-License-Identifier: Apache-2.0 */
/* First-in, first-out queues of operations and of completed reads. */
#include "daemon/loop/store_queues.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/op.h"

void op_queue_init(struct op_queue *q)
{
	*q = (struct op_queue){.last = &q->first};
}

void op_queue_push(struct op_queue *q, struct op *op)
{
	op->next = NULL;
	*q->last = op;
	q->last = &op->next;
	q->n++;
}

void op_queue_push_first(struct op_queue *q, struct op *op)
{
	op->next = q->first;
	if (!q->first)
		q->last = &op->next;
	q->first = op;
	q->n++;
}

struct op *op_queue_pop(struct op_queue *q)
{
	struct op *op = q->first;

	if (!op)
		return NULL;
	q->first = op->next;
	if (!q->first)
		q->last = &q->first;
	q->n--;
	return op;
}

void task_queue_init(struct task_queue *q)
{
	*q = (struct task_queue){.last = &q->first};
}

void task_queue_push(struct task_queue *q, struct read_task *t)
{
	t->item.next = NULL;
	*q->last = &t->item;
	q->last = &t->item.next;
}

struct read_task *task_queue_pop(struct task_queue *q)
{
	struct fair_item *item = q->first;

	if (!item)
		return NULL;
	q->first = item->next;
	if (!q->first)
		q->last = &q->first;
	return (struct read_task *)item;
}
