/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the pauses of scopes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct pause_list;
struct pause_order;
struct store;

/* Reads the pauses of scopes; with a uid those that concern its jobs, -1: all. */
bool pause_rows_read(struct store *s, int64_t uid, struct pause_list *ret, struct err *e);
/* The same for the owner 'uid' of this job; may be sent before the owner is known. */
bool pause_rows_of_job(struct store *s, int64_t uid, int64_t job, struct pause_list *ret, struct err *e);
bool pause_rows_prefetch(struct store *s, int64_t job, struct err *e);
bool pause_rows_list(struct store *s, int64_t uid, struct pause_list *ret, struct err *e); /* in a transaction of its own */
bool pause_row_write(struct store *s, const struct pause_order *p, struct err *e); /* replaces the pause of this scope */
