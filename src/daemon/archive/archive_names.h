/* SPDX-License-Identifier: Apache-2.0 */
/* Names of archived objects. Each follows from what the object contains, so a repeated upload replaces the first one. */
/*
 *   runs/YYYY/MM/DD/HHMMSS-rRUN-oOWNER-jJOB-STATE-USER-NAME.json   a run, by the time of its slot in UTC
 *   output/YYYY/MM/DD/HHMMSS-rRUN.ATTEMPT                          the output of an attempt
 *   jobs/jJOB-oOWNER-NAME.json                                     the last definition of a job
 * OWNER is the owner number (core/job/owner.h). Bytes of USER and NAME other than letters, digits, '_' and '.' (and '-' in NAME)
 * are ~XX. Names sort by time.
 */
#pragma once
#include "base/clock.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct job;

#define ARCHIVE_NAME_MAX 800

char *archive_name_of_run(const struct run *r); /* the caller frees these */
char *archive_name_of_output(usec_t slot, int64_t run, int64_t attempt);
char *archive_name_of_job(const struct job *j);
/* "runs/YYYY/MM/DD/HHMMSS", before all names of runs with this slot or a later one. */
char *archive_name_from(usec_t slot);

struct archive_run_name {
	usec_t slot; /* to the second */
	int64_t run, owner, job;
	enum run_state state;
	const char *user, *name; /* encoded; in the parsed text, 'user' ends at user_len */
	size_t user_len, name_len;
};
bool archive_name_parse(const char *name, struct archive_run_name *ret); /* of a run */
void archive_name_encode(struct buf *out, const char *text, bool dash);
