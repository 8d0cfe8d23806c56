/* SPDX-License-Identifier: Apache-2.0 */
/* Reads single objects by number or name. */
#pragma once
#include "store/lists.h"
#include <stdbool.h>

struct err;
struct store;
struct strv;

/*
 * 'uid' is the owner number of the client; -1 sees all jobs. A job of another owner is
 * ERR_NOT_FOUND, like one that does not exist.
 */
bool store_job_get(struct store *s, int64_t uid, int64_t id, struct job **ret, struct err *e);
/*
 * A name belongs to one live job of its owner. Ended jobs keep their names; the name then means the
 * newest job that is not removed. ERR_CONFLICT: jobs of several owners have the name.
 */
bool store_job_find(struct store *s, int64_t uid, const char *name, struct job **ret, struct err *e);
bool store_job_names(struct store *s, int64_t uid, size_t limit, struct strv *ret, struct err *e); /* for suggestions */
bool store_run_get(struct store *s, int64_t uid, int64_t id, struct run **ret, struct err *e);
bool store_attempts(struct store *s, int64_t run, struct attempt_list *ret, struct err *e);

/* The end of the output of an attempt, as base64; *ret NULL: not stored. */
bool store_output_tail(struct store *s, int64_t run, int64_t fence, char **ret, struct err *e);
/* The name of the node that an engine belongs to; *ret NULL: unknown. */
bool store_node_name(struct store *s, const char *engine, char **ret, struct err *e);
/* An earlier definition of a job; *ret NULL: not kept. */
bool store_revision_spec(struct store *s, int64_t job, int64_t revision, char **ret, struct err *e);
