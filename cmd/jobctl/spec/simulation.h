/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation filled with the jobs and limits of the daemon. */
#pragma once
#include "base/clock.h"
#include "core/decide/simulate.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct schedule_set;
struct zone;
struct zone_cache;

#define SIMULATION_DAYS_MAX 366
#define SIMULATION_SLOTS_MAX 20000000 /* about ten seconds of computing */
#define SIMULATION_CHANGES_MAX 64

struct simulation_job_name {
	int64_t id;
	char *name; /* owned; NULL: none */
	struct schedule_set *set; /* owned */
	bool learned; /* the durations are from its history */
};
struct simulation_limit_name {
	const char *kind; /* static: "nodes", "queue", "owner" */
	char *name;       /* owned; NULL: none */
};

struct simulation {
	struct simulate s;
	struct simulation_job_name *jobs;    /* owned; as s.jobs */
	struct simulation_limit_name *limits; /* owned; as s.limits */
	struct zone_cache *zones;            /* owned */
	const struct zone *zone;             /* of the days */
	usec_t assumed;                      /* duration of a job without history */
	size_t unlearned;                    /* jobs without history */
	size_t paused;                       /* jobs that are paused without an end; left out */
	size_t unscheduled;                  /* jobs without slots in the period; left out */
	size_t unreadable;                   /* jobs whose schedule this version cannot read; left out */
	char *next_cursor;                   /* owned; NULL: all jobs were read */
};
void simulation_done(struct simulation *m);

/* Sets the period; 'tz' is the zone in which the days begin. */
bool simulation_init(struct simulation *m, usec_t from, int64_t days, const char *tz, struct err *e);
/* Adds a limit; the first one is that of all nodes together. 'running' 0: no limit. */
void simulation_add_limit(struct simulation *m, const char *kind, const char *name, int64_t running);
/* Adds a job object of the API that has 'durations'. */
void simulation_add_job(struct simulation *m, const json_t *job);
