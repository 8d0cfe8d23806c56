/* SPDX-License-Identifier: Apache-2.0 */
/* A run in our hands: from its claim until its end is in the store. */
#pragma once
#include "base/map.h"
#include "core/job/start_plan.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include <stdbool.h>

enum flight_stage {
	FLIGHT_HELD,     /* claimed a moment early, to start when another ends */
	FLIGHT_ADOPTED,  /* taken over from an earlier life; the spawner has not yet said what it is */
	FLIGHT_FETCHING, /* waits for its artifact */
	FLIGHT_STARTING, /* the plan was sent */
	FLIGHT_RUNNING,
	FLIGHT_ENDED,    /* the end is known and not yet in the store */
};

struct flight {
	struct run *run;         /* owned */
	char *spec;              /* owned; JSON of the job, until the plan is sent */
	char *artifact, *artifact_sum; /* owned; URL and SHA-256 of its artifact; NULL: none */
	int tree;                /* owned; the directory of its artifact, until the plan is sent; -1: none */
	enum flight_stage stage;
	struct retry_policy retry; /* nothing asked for, until its spec was read */
	bool orphan;             /* its spawner is gone; lost, unless the next one knows how it ended */
	bool keeps;              /* its job may overlap: it goes on when the lease is lost */
	bool stopped;            /* it ended because the spawner was told to stop */
	struct flight *next_held;
	bool start_recorded;
	enum start_failure refused; /* why it was denied; START_ERROR: it was not */
	bool recording;          /* its end is on the way to the store */
	bool late;               /* ... which did not take it before */
	struct attempt end;      /* owned strings; of a running one: pid and start */
	usec_t typical;          /* how long it usually takes; 0: nobody wants to know */
	usec_t long_at;          /* when it takes unusually long; 0: not, or it was said */
};

struct job_spec;
bool flight_keeps(const struct job_spec *spec);
struct flight *flight_new(struct run *run /* moved */, enum flight_stage stage);
void flight_free(struct flight *f);

/* All of them, by run. */
struct flights {
	struct map by_run;
	size_t active;           /* neither held nor ended: these take up room */
	size_t starting;         /* of these, sent to the spawner and not heard of yet */
	struct flight *first_held, *last_held;
	size_t held;
	void (*on_remove)(struct flight *f, void *arg); /* before it is freed; NULL: nothing */
	void *arg;
};
void flights_done(struct flights *all);
struct flight *flights_get(const struct flights *all, int64_t run, int64_t fence); /* NULL: not ours */
void flights_add(struct flights *all, struct flight *f /* moved */);
void flights_remove(struct flights *all, struct flight *f); /* frees it */
void flights_stage(struct flights *all, struct flight *f, enum flight_stage stage); /* neither from nor to FLIGHT_HELD */
void flights_hold(struct flights *all, struct flight *f);
struct flight *flights_release(struct flights *all, struct flight *f); /* NULL: the first one; to FLIGHT_STARTING */
void flights_end(struct flights *all, struct flight *f);    /* to FLIGHT_ENDED */
/* Tells each running one that takes unusually long, once. When the next one will; USEC_NEVER: none. */
usec_t flights_overlong(struct flights *all, usec_t now, void (*tell)(struct flight *f, void *arg), void *arg);
