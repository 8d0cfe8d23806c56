/* SPDX-License-Identifier: Apache-2.0 */
/* What a schedule will do, without a daemon. */
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
	struct strv schedules;  /* united */
	char *tz;               /* NULL: UTC */
	char *id;               /* seed of H; NULL: empty */
	usec_t from;            /* slots after this */
	usec_t submitted;       /* of a job that exists; 0: as if it were submitted at 'from' */
	usec_t due;             /* the next slot of that job as the daemon knows it; 0: none */
	int64_t count;
	enum dst_gap gap;
	enum dst_fold fold;
	usec_t bound_from, bound_until; /* no slot before or after; 0: no bound */
};
void preview_done(struct preview *p);
bool preview_of_job(const json_t *job, struct preview *ret /* empty */, struct err *e);

/* Compiles the schedules; the zone is the cache's. */
bool preview_open(struct zone_cache *zones, const struct preview *p, const struct zone **ret_zone,
	struct schedule_set **ret, struct err *e);

/* Called for each slot, ascending. */
typedef void preview_fn(usec_t slot, const struct zone *z, void *arg);
bool preview_each(struct zone_cache *zones, const struct preview *p, preview_fn *fn, void *arg,
	struct err *e);

/* A row of --batch: schedule TAB zone TAB from TAB count TAB id. Appends instants with commas, or ERROR and why. */
void preview_batch_row(struct zone_cache *zones, const char *row, struct buf *out);

/* 2024-03-31T03:00:00+02:00; seconds of the offset only where there are any */
void preview_local(usec_t slot, const struct zone *z, struct buf *out);

/* Seconds the clock jumps on the local day of a slot; 0 on ordinary days. */
int64_t preview_clock_change(usec_t slot, const struct zone *z);
