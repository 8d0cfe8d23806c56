/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones as tables of UTC offset periods. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define ZONE_BYTES_MAX (256 * 1024) /* the largest file of tzdata has 4 KiB */
#define ZONE_NAME_MAX 64
#define ZONE_OFFSET_MAX (26 * 3600) /* POSIX footers and real zones stay within 25:59:59 */
#define ZONE_POLICY_MAX (3 * 3600)  /* a longer jump is treated as a correction of the zone, not as DST */
#define ZONE_RULE_YEAR 2200         /* the last year for which POSIX rules are expanded */
/*
 * Bounds of all periods, far enough from the limits of int64_t that adding an offset cannot
 * overflow.
 */
#define ZONE_BEGIN (-(INT64_C(1) << 60))
#define ZONE_END (INT64_C(1) << 60)

/* A period with one offset. Adjacent periods differ in their offsets. */
struct zone_period {
	int64_t from;   /* UTC seconds; the first one begins before everything */
	int64_t offset; /* seconds east of UTC */
	int64_t seen;   /* wall times before this were shown by earlier periods, too */
};

/* Immutable; may be shared between threads. */
struct zone {
	char name[ZONE_NAME_MAX];
	size_t n;
	const struct zone_period *v; /* n of them and one more, which begins after everything */
};

extern const struct zone zone_utc;

/* Parses the content of a TZif file. Rules are expanded through 2200. */
bool zone_parse(const char *name, const void *data, size_t len, struct zone **ret, struct err *e);
void zone_free(struct zone *z);
AUTO_DEFINE(zone);

/* Names as in tzdata: no "..", not absolute, no odd characters. */
bool zone_name_check(const char *name, struct err *e);

size_t zone_find(const struct zone *z, int64_t t); /* the period that holds at t */
int64_t zone_offset(const struct zone *z, int64_t t);

/*
 * The instant of a wall time: skipped times are the first instant after
 * the jump, repeated ones the first pass.
 */
int64_t zone_instant(const struct zone *z, int64_t wall);

enum zone_wall { ZONE_WALL_ONCE, ZONE_WALL_SKIPPED, ZONE_WALL_REPEATED };
enum zone_wall zone_wall(const struct zone *z, int64_t wall);
