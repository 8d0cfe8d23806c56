/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the job list that its orders share. */
#pragma once
#include "store/read/list/list_jobs.h"
#include <stddef.h>

struct query;

#define JOB_EXAMINE_MAX 2000  /* rows read for one page; then the page is returned short, with a cursor */
#define JOB_FEW_MIN 1000      /* so many jobs are sorted in memory instead of scanning the index of a sort key ... */
#define JOB_FEW_MAX 10000     /* ... up to so many if the store has many jobs */

/* A row of an index, as job_line in common.sql. */
struct job_line {
	int64_t id;
	usec_t created_at;
	int64_t key, tie, segment;
	char name[JOB_NAME_BYTES];
	bool shown;    /* the job has this place in the list and matches the filter, except its tag */
};
void list_jobs_line_read(struct query *q, const struct job_filter *f, struct job_line *ret);

/* Clears 'shown' of the jobs that do not match the filter, with its tag. */
bool list_jobs_check_lines(struct store *s, const struct job_filter *f, struct job_line *v, size_t n, struct err *e);

/* The stages of a search. */
enum search_stage {
	SEARCH_NEW,
	SEARCH_READS,  /* collects the jobs that match */
	SEARCH_FEW,    /* has all of them */
	SEARCH_MANY,   /* they are probably many: the index of the sort key is scanned instead */
	SEARCH_TOO_MANY, /* there are more than job_search.most */
};

/* Makes the next step of a search. */
bool list_jobs_search_step(struct store *s, const struct job_filter *f, struct job_search *search, struct err *e);
void list_jobs_search_add(struct job_search *search, int64_t id);
/* Notes that 'rows' of the index of the sort key were examined. A search continues if that takes long. */
void list_jobs_search_scanned(struct job_search *search, size_t rows);

/*
 * Examines about 'rows' rows of the index that the filter selects, in the order of numbers, and adds
 * the jobs that match. *ret_end: there are no more.
 */
bool list_jobs_collect(struct store *s, const struct job_filter *f, struct job_search *search, size_t rows,
	bool *ret_end, struct err *e);

/* Reads the jobs with these ids until f->bytes is reached; *ret_n: how many ids were used. */
bool list_jobs_read(struct store *s, const struct job_filter *f, const int64_t *ids, size_t n,
	struct job_list *ret, size_t *ret_n, struct err *e);

/* Whether a name matches a pattern with '*' and '?'. */
bool list_jobs_glob(const char *glob, const char *name);
/* The length of the literal prefix of the name pattern; 0: there is none. */
size_t list_jobs_prefix(const struct job_filter *f);
/* False: no job can match the name pattern. */
bool list_jobs_possible(const struct job_filter *f);
