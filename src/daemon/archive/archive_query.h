/* SPDX-License-Identifier: Apache-2.0 */
/* A search in the archive, and a page of its results. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive_run_name;
struct err;

struct archive_query {
	int64_t scope;         /* owner number, or OWNER_ALL or OWNER_NOT_ROOT: the runs that the client may see */
	int64_t run, job;      /* 0: any */
	char *job_name, *user; /* owned, encoded as in archive_names.h; NULL: any */
	unsigned states;       /* bits of enum run_state; 0: any */
	usec_t since, until;   /* of the slot; 0: no limit */
	size_t limit;
	char *cursor;          /* owned; NULL: from the beginning */
};
void archive_query_done(struct archive_query *q);
bool archive_query_sees(const struct archive_query *q, int64_t owner);
bool archive_query_matches(const struct archive_query *q, const struct archive_run_name *n);

struct archive_page {
	struct buf runs; /* JSON objects, separated by commas */
	size_t n;
	char *next;      /* owned: cursor of the next page; NULL: this is the last one */
};
void archive_page_done(struct archive_page *p);

/* The run of a line of the archive; NULL: it is not a run. */
json_t *archive_record_parse(const char *line, size_t len);
/* Names the run of a parsed record; 'room' keeps the texts. False: members are missing. */
bool archive_record_name(const json_t *run, struct archive_run_name *ret, struct buf *room);
/* Adds the run to the page, without the members that only the daemon uses. */
void archive_page_add(struct archive_page *p, json_t *run /* changed */, const char *as);

/* The archived output of an attempt. */
struct archive_output_place {
	char *object; /* owned: the name of the object; NULL: none */
	struct buf end; /* the end that was in the store */
};
void archive_output_place_done(struct archive_output_place *p);
/* Attempt 0: the newest one. ERR_NOT_FOUND: its output was not archived. */
bool archive_record_output(const json_t *run, int64_t attempt, struct archive_output_place *ret, struct err *e);
