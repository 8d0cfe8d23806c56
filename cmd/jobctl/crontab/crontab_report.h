/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of each line of a crontab, in words. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct crontab_source;
struct zone_cache;

struct crontab_report {
	struct zone_cache *zones;
	const char *zone;      /* of the machine */
	usec_t now;            /* next times are after this one */
	bool relative;         /* for a terminal: add how long from now */
};

/* All settings, entries and refused lines with their findings, in the order of the file. */
void crontab_report_lines(const struct crontab_report *r, const struct crontab_source *s, struct buf *out);
/* "24 lines: 5 entries, 2 settings, 12 comments, 5 blank" */
void crontab_report_counts(const struct crontab_source *s, struct buf *out);
/* Lines "FILE:17:40: warning: … (percent)"; returns their number. */
size_t crontab_report_findings(const struct crontab_report *r, const struct crontab_source *s, struct buf *out);
