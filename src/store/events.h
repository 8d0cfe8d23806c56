/* SPDX-License-Identifier: Apache-2.0 */
/* Audit events of a batch, inserted with its commit. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;
struct event_list;
struct event_new;
struct store;

void event_add(struct store *s, const struct event_new *n); /* not for a refused operation */
size_t event_mark(const struct store *s);
void event_rewind(struct store *s, size_t mark); /* discards the events after that mark */
bool events_open(struct store *s, struct err *e); /* as the first statement of a transaction that writes */
bool event_write(struct store *s, struct err *e);
/* Moves the events that the last batch has written to 'ret', for the log. They have no ids. */
void event_take_written(struct store *s, struct event_list *ret /* filled, owned */);
