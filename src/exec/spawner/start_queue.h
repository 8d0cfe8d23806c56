/* SPDX-License-Identifier: Apache-2.0 */
/* Starts on their way to a process: admitted or refused, and kept while nobody knows yet who their owner is, or his secrets. */
#pragma once
#include "core/job/start_failure.h"
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
	struct open_files files;           /* they share the memory of who users are */
	struct start *first, **last;       /* those that wait */
	size_t n;
};

struct start_queue_options {
	int ep;
	struct workers *workers;
	const struct admission *admission;
};
void start_queue_init(struct start_queue *st, const struct start_queue_options *o);
void start_queue_done(struct start_queue *st);

/* Its worker, or the refusal, is told of now or later. All but the frame is moved. */
struct start_request {
	const struct frame_start *frame;
	struct payload *payload;
	int in, artifact; /* descriptors; -1: none */
};
void start_queue_add(struct start_queue *st, const struct start_request *parts);
bool start_queue_has(const struct start_queue *st, int64_t run, int64_t fence);
void start_queue_cancel(struct start_queue *st, int64_t run, int64_t fence); /* none of these is fine */
void start_queue_drop(struct start_queue *st);                  /* nobody is left who wants to hear of them */
void start_queue_refuse(struct start_queue *st, enum start_failure reason, const char *why); /* all that wait */
