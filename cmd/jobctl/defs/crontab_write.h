/* SPDX-License-Identifier: Apache-2.0 */
/* Writes job definitions as lines of a crontab(5). */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct job_spec;

struct crontab_write {
	const char *zone; /* of the machine: cron(8) uses no other */
	bool reveal;      /* write values that look like secrets */
	size_t jobs, lines, refused; /* out: jobs written, their lines, jobs written as a comment */
};
/*
 * Appends one line per schedule, after comments with the name and the settings that a crontab
 * cannot express. A job that cannot be expressed at all becomes a comment with the reason.
 */
void crontab_write_job(struct crontab_write *w, const struct job_spec *s, struct buf *out);
