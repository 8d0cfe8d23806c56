/* SPDX-License-Identifier: Apache-2.0 */
/* Memory files that the command of a worker writes and the spawner reads at the end: results, gate. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct frame;
struct user;
struct worker;

/* Creates the file of a job with --results, which belongs to the user. 0, or -errno. */
int worker_results_offer(struct worker *w, const struct user *user);
/* Creates the file of a job with a gate. 0, or -errno. */
int worker_gate_offer(struct worker *w, const struct user *user);
/* Sets the outcome of a worker whose gate did not let the command start. */
void worker_gate_read(struct worker *w);
/* Reads the file after the last process has ended; masks secrets; keeps the valid lines. */
void worker_results_read(struct worker *w);
void worker_results_done(struct worker *w);
/* Fills a frame with the lines from *at on and advances *at; false: there are none left. */
bool worker_results_frame(struct frame *f, const struct worker *w, size_t *at);
/* Adds the text of a frame, after a restart of the spawner. */
void worker_results_add(struct worker *w, const char *text);
