/* SPDX-License-Identifier: Apache-2.0 */
/* Start requests that wait for a user lookup, for secrets or for their launch. */
#pragma once
#include "core/start/start_failure.h"
#include "exec/proto/frame.h"
#include "exec/proto/payload.h"
#include "exec/spawner/open_file.h"
#include "exec/spawner/secret_reader.h"
#include "exec/spawner/user_cache.h"
#include <stdbool.h>

struct admission;
struct start;
struct workers;

struct start_queue {
	struct workers *workers;           /* borrowed, as is the next */
	const struct admission *admission;
	struct user_cache users;
	struct secret_readers readers;
	struct open_files files;           /* shares the user cache */
	struct start *first, **last;       /* waiting for a user lookup or for secrets */
	size_t n;
};

struct start_queue_options {
	int ep;
	struct workers *workers;
	const struct admission *admission;
};
void start_queue_init(struct start_queue *st, const struct start_queue_options *o);
void start_queue_done(struct start_queue *st);

/*
 * The result, a worker or a refusal, is reported now or later. All members except the frame are
 * moved.
 */
struct start_request {
	const struct frame_start *frame;
	struct payload *payload;
	int in, artifact; /* descriptors; -1: none */
};
void start_queue_add(struct start_queue *st, const struct start_request *parts);
bool start_queue_has(const struct start_queue *st, int64_t run, int64_t fence);
/* Not in the queue: no effect. */
void start_queue_cancel(struct start_queue *st, int64_t run, int64_t fence);
void start_queue_drop(struct start_queue *st);                  /* removes all without a report */
/* Refuses all that wait. */
void start_queue_refuse(struct start_queue *st, enum start_failure reason, const char *why);
