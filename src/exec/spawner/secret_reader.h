/* SPDX-License-Identifier: Apache-2.0 */
/* Reads secret files in a child that runs as their owner. The loop does not wait for it. */
#pragma once
#include "base/clock.h"
#include "base/deadline.h"
#include <stdbool.h>

struct cgroup;
struct err;
struct exec_spec;
struct secrets;
struct secret_reader;
struct user;
struct workers;

/*
 * Called once per reader. 's' has the values and may be moved from; NULL: 'error' is the reason.
 * 'group' is the control group of the run, in which the child has read the files; it may be moved
 * from, too. The callback frees the reader.
 */
typedef void secret_reader_fn(struct secrets *s, struct cgroup *group, const char *error,
	void *arg);

struct secret_readers {
	int ep;                   /* borrowed */
	struct workers *workers;  /* reaps the children; borrowed */
	struct deadlines deadlines;
};
void secret_readers_done(struct secret_readers *rs);
/* 'spec' is borrowed until the callback. */
bool secret_reader_start(struct secret_readers *rs, const struct exec_spec *spec,
	const struct user *owner, secret_reader_fn *fn, void *arg, struct secret_reader **ret,
	struct err *e);
void secret_reader_free(struct secret_reader *r); /* without a callback; NULL is fine */
void secret_readers_timeouts(struct secret_readers *rs, usec_t now);
usec_t secret_readers_next_timeout(const struct secret_readers *rs);

/*
 * The main function of the reading process, which runs as the owner: NUL-terminated paths from
 * descriptor 0, records to 1.
 */
int secret_reader_main(void);
