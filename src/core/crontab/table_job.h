/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a crontab as job definitions. The spawner's reader, which approves root's lines, and
 * the daemon, which runs them, must get the same definitions from the same bytes.
 */
#pragma once
#include "base/auto.h"
#include "core/job/job.h"
#include "core/job/warrant.h"

struct anacrontab;
struct crontab;

#define TABLE_TAG "crontab"          /* of all jobs of crontabs: the path of the table */
#define TABLE_TAG_ANACRON "anacron"  /* of a job of anacrontab: its identifier */

struct table_job {
	int64_t line;
	char *user;                            /* owned; whose job it is */
	unsigned char identity[WARRANT_JOB_LEN]; /* the same while the line and its path are unchanged */
	struct job_spec spec;                  /* without zone and warrant */
	const char *zone;                      /* CRON_TZ, borrowed from the table; NULL: the zone of the machine */
};
struct table_jobs {
	struct table_job *v;
	size_t n;
};
void table_jobs_done(struct table_jobs *l);

/* 'user' is the owner of a user table; of a system table each line has its own. */
void table_jobs_build(const struct crontab *t, const char *path, const char *user, struct table_jobs *ret);
/* The schedule is empty: it depends on the last run. */
void table_jobs_build_anacron(const struct anacrontab *t, const char *path, struct table_jobs *ret);
