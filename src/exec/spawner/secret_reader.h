/* SPDX-License-Identifier: Apache-2.0 */
/* Has secrets read by a process that is their owner, never by us; the loop does not wait for it. */
#pragma once
#include "base/clock.h"
#include "exec/worker/deadline.h"
#include <stdbool.h>

struct cgroup;
struct err;
struct order;
struct secrets;
struct secrets_reading;
struct user;
struct workers;

/*
 * Once: the values, which may be moved away; NULL: 'error' says why not. 'group' is the run's control group, in which the process
 * has read them; it may be moved away, too. The reading is freed afterwards.
 */
typedef void secrets_read_fn(struct secrets *s, struct cgroup *group, const char *error, void *arg);

struct secrets_readers {
	int ep;                   /* borrowed */
	struct workers *workers;  /* borrowed: whose children the processes are, too */
	struct deadlines deadlines;
};
void secrets_readers_done(struct secrets_readers *rs);
/* 'order' is borrowed while it reads. */
bool secrets_read(struct secrets_readers *rs, const struct order *order, const struct user *owner, secrets_read_fn *fn,
	void *arg, struct secrets_reading **ret, struct err *e);
void secrets_reading_free(struct secrets_reading *r); /* without a word; NULL is fine */
void secrets_readers_turn(struct secrets_readers *rs, usec_t now);
usec_t secrets_readers_next(const struct secrets_readers *rs);
