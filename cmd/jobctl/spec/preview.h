/* SPDX-License-Identifier: Apache-2.0 */
/* Upcoming slots of a schedule, computed without the daemon. */
#pragma once
#include "base/text.h"
#include "core/time/schedule.h"
#include "core/time/schedule_set.h"
#include <jansson.h>

struct buf;
struct err;
struct zone;
struct zone_cache;

#define PREVIEW_MAX 100000

struct preview {
	struct strv schedules;  /* a slot of any of them counts */
	char *tz;               /* NULL: UTC */
	char *id;               /* hashed for H fields; NULL: empty */
	char *after;            /* the jobs that the job runs after, in words; NULL: none */
	usec_t from;            /* slots after this time */
	usec_t submitted; /* when the job was submitted; 0: no job, as if submitted at 'from' */
	usec_t due;             /* next slot of the job as stored by the daemon; 0: none */
	int64_t count;
	enum dst_gap gap;
	enum dst_fold fold;
	usec_t bound_from, bound_until; /* no slots outside; 0: no bound */
};
void preview_done(struct preview *p);
bool preview_of_job(const json_t *job, struct preview *ret /* empty */, struct err *e);

/* Parses the schedules. The zone is owned by the cache. */
bool preview_open(struct zone_cache *zones, const struct preview *p, const struct zone **ret_zone,
	struct schedule_set **ret, struct err *e);

/* Called for each slot in ascending order. */
typedef void preview_fn(usec_t slot, const struct zone *z, void *arg);
bool preview_each(struct zone_cache *zones, const struct preview *p, preview_fn *fn, void *arg,
	struct err *e);

/*
 * A row of --batch: schedule TAB zone TAB from TAB count TAB id. Appends comma-separated times, or
 * ERROR and a message.
 */
void preview_batch_row(struct zone_cache *zones, const char *row, struct buf *out);

/* Appends 2024-03-31T03:00:00+02:00; the offset has seconds only if they are not 0. */
void preview_local(usec_t slot, const struct zone *z, struct buf *out);

/* By how many seconds the clock changes on the local day of a slot; 0: not at all. */
int64_t preview_clock_change(usec_t slot, const struct zone *z);
