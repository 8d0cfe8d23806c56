/* SPDX-License-Identifier: Apache-2.0 */
/* Starts on their way to a process: admitted or refused, and kept while nobody knows yet who their owner is, or his secrets. */
#pragma once
#include "exec/proto/frame.h"
#include "exec/spawner/open_file.h"
#include "exec/proto/payload.h"
#include "exec/spawner/secret_reader.h"
#include "exec/spawner/user_cache.h"
#include <stdbool.h>

struct admission;
struct start;
struct workers;

struct starts {
	struct workers *workers;           /* borrowed, as is the next */
	const struct admission *admission;
	struct users users;
	struct secrets_readers readers;
	struct open_files files;           /* they share the memory of who users are */
	struct start *first, **last;       /* those that wait */
	size_t n;
};

struct starts_options {
	int ep;
	struct workers *workers;
	const struct admission *admission;
};
void starts_init(struct starts *st, const struct starts_options *o);
void starts_done(struct starts *st);

/* Its worker, or the refusal, is told of now or later. All but the frame is moved. */
struct start_parts {
	const struct frame_start *frame;
	struct payload *payload;
	int in, artifact; /* descriptors; -1: none */
};
void starts_add(struct starts *st, const struct start_parts *parts);
bool starts_has(const struct starts *st, int64_t run, int64_t fence);
void starts_cancel(struct starts *st, int64_t run, int64_t fence); /* none of these is fine */
void starts_drop(struct starts *st);                  /* nobody is left who wants to hear of them */
void starts_refuse(struct starts *st, enum start_failure reason, const char *why); /* all that wait */
