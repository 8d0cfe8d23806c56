/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages of jobs by filter. */
#pragma once
#include "base/clock.h"
#include "store/lists.h"
#include <stdbool.h>

struct err;
struct keyed;
struct store;

enum job_sort { JOB_SORT_NUMBER, JOB_SORT_NAME, JOB_SORT_NEXT, JOB_SORT_LAST, JOB_SORT_MAX };

/*
 * The order is by id unless 'sort' is set, with a creation range by time and id. Ranges include
 * 'since' and exclude 'until'.
 */
struct job_filter {
	int64_t uid;          /* -1: all owners */
	unsigned states;      /* bits 1 << enum job_state; 0: all except removed */
	const char *owner, *name_glob, *tag_key, *tag_value, *queue; /* NULL: any */
	usec_t created_since, created_until; /* 0: open */
	enum job_sort sort;   /* for list_jobs_sorted() */
	bool down;            /* descending */
	int64_t after;        /* cursor: higher ids follow, with 'down' lower ones; 0: from the start */
	size_t limit;
	size_t bytes;         /* the page ends with the job whose definition reaches this size; 0: no limit */
};
bool list_jobs_page(struct store *s, const struct job_filter *f, struct job_list *ret, struct err *e);

/* Reads only the ids of a page; *ret_next as in job_list. */
bool list_jobs_ids(struct store *s, const struct job_filter *f, int64_t **ret /* owned */, size_t *ret_n,
	int64_t *ret_next, struct err *e);

#define JOB_NAME_BYTES 129

/* A place in a sorted list. */
struct job_place {
	int phase;            /* which index; 0: the start of the list */
	int64_t key, segment; /* of the index: a slot, and the segment of the job */
	int64_t tie;          /* id of the job or run */
	char name[JOB_NAME_BYTES];
};
/* The facts that a list has found about the jobs that match its filter. Zero-initialised for each list. */
struct job_search {
	int stage;
	size_t most;              /* so many jobs are sorted in memory */
	bool by_name, by_state;   /* compares names; reads the indexes of the states */
	int64_t *ids;             /* owned: jobs that match, as far as they were read */
	size_t n;
	struct keyed *sorted;     /* owned: the same jobs with their sort keys, in order */
	size_t sorted_n;
	int64_t after;            /* place of the search: id ... */
	usec_t at;                /* ... creation time ... */
	char name[JOB_NAME_BYTES]; /* ... or name */
	size_t scanned;           /* rows of the index of the sort key that were examined */
};
void job_search_done(struct job_search *search);

/*
 * Reads the page after 'place' and moves 'place'. ret->next is not 0 if more may follow. A page may be
 * empty while the search continues; 'search' belongs to one list and is passed with each of its pages.
 */
bool list_jobs_sorted(struct store *s, const struct job_filter *f, struct job_place *place,
	struct job_search *search, struct job_list *ret, struct err *e);
/* The same in the order of numbers, after f->after. ret->next is the cursor. */
bool list_jobs_numbered(struct store *s, const struct job_filter *f, struct job_search *search,
	struct job_list *ret, struct err *e);
/* Whether the place can be one of a list with this order. */
bool list_jobs_place_check(const struct job_filter *f, const struct job_place *place);
