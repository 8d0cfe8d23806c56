/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of 'jobctl top': keys, signals, answers of the daemon. */
#pragma once
#include "jobctl/top/top_rows.h"

struct buf;
struct ctl;
struct err;

/* The texts of other verbs, from the answers of the API. */
struct top_loop_texts {
	bool (*job)(const struct ctl *c, const json_t *job, struct buf *out, struct err *e);
	void (*run)(const struct ctl *c, const json_t *run, struct buf *out);
	void (*why)(const struct ctl *c, const json_t *answer, struct buf *out);
};
/* Runs until the user quits or a signal ends it; returns the exit code. */
int top_loop_run(struct ctl *c, enum top_view view, const struct top_loop_texts *texts);
