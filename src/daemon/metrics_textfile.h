/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the metrics to a file at an interval, for the textfile collector of node_exporter. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct metrics_source;
struct metrics_textfile;
struct sd_event;
struct store_outage;
struct store_thread;

/* All pointers are borrowed. */
bool metrics_textfile_start(struct sd_event *ev, struct store_thread *store, const struct store_outage *outage,
	const struct metrics_source *from, const char *path, usec_t interval, struct metrics_textfile **ret, struct err *e);
void metrics_textfile_stop(struct metrics_textfile *t); /* writes no more and removes the file; NULL is fine */
void metrics_textfile_free(struct metrics_textfile *t); /* after the store threads have ended; NULL is fine */
