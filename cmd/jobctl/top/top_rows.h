/* SPDX-License-Identifier: Apache-2.0 */
/* The views of 'jobctl top': requests, columns, sort orders and filters of their rows. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct row_kind;

enum top_view { TOP_JOBS, TOP_RUNS, TOP_QUEUES, TOP_NODES, TOP_VIEW_MAX };

#define TOP_PAGE 200       /* rows per request */
#define TOP_PAGE_SORTED 1000 /* rows per request when the rows are sorted here: the maximum of the API */

struct top_sort {
	const char *name; /* NULL ends a list */
	int (*compare)(const void *a, const void *b); /* of json_t pointers; NULL: as the daemon sends them */
};

struct top_view_info {
	const char *name;   /* "jobs" */
	const char *path;   /* of the API */
	const char *member; /* of the answer */
	bool paged;         /* the list has cursors */
	const struct row_kind *rows;
	const struct top_sort *sorts;
};
extern const struct top_view_info top_views[TOP_VIEW_MAX];

/* Identifies a row across updates: the number of a job or run, the name of a queue or node. */
void top_rows_key(const json_t *row, enum top_view view, struct buf *out);
/* Whether a member that is shown contains the text; letters match without regard to case. */
bool top_rows_match(const json_t *row, const char *text);
/* A new array with the matching rows in the given order; caller calls json_decref(). */
json_t *top_rows_select(const json_t *answer, enum top_view view, const char *text /* NULL: all */,
	size_t sort);
