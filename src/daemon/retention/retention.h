/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes expired history periodically, in small steps. */
#pragma once
#include "base/auto.h"
#include "store/read/prune_candidates.h"
#include <stdbool.h>
#include <stddef.h>

struct clock;
struct err;
struct retention;
struct s3_client;
struct sd_event;
struct store_thread;

struct retention_limits {
	struct prune_rule keep;
	int64_t store_budget;   /* bytes; 0: no limit */
	int64_t owner_store_limit; /* bytes of one owner other than root; 0: no limit */
	int64_t output_budget;
};
struct retention_options {
	const struct clock *clock;
	struct store_thread *store;
	struct retention_limits limits;
	const char *archive;    /* borrowed: directory or s3://BUCKET/PREFIX; NULL: nothing is archived */
	struct s3_client *s3;   /* borrowed; NULL: the archive is a directory */
	bool archive_outputs;   /* the output of attempts is archived, too */
	const char *node_name;
	bool (*may)(void *arg); /* this node leads, so it deletes history; NULL: always */
	int output_dir;         /* to find orphaned output files */
	/*
	 * Has the spawner delete the output of an attempt; false: the spawner is not connected, try
	 * later.
	 */
	bool (*forget)(int64_t run, int64_t attempt, void *arg);
	void *arg;
};

/* Result of a pass. */
struct retention_report {
	int64_t runs, jobs, events, outputs, output_bytes;
	bool ok;
	char why[512];          /* if not ok */
};
typedef void retention_done_fn(const struct retention_report *r, void *arg);

bool retention_new(struct sd_event *ev, const struct retention_options *o, struct retention **ret,
	struct err *e);
void retention_free(struct retention *r); /* after the store threads have ended */
AUTO_DEFINE(retention);
struct prune_rule retention_rule(const struct retention *r);
void retention_stop(struct retention *r); /* before the store threads end: begins no further step */
void retention_set_limits(struct retention *r, const struct retention_limits *l);

/*
 * Runs a pass now, or after the current one. 'fn' is always called, at the latest by
 * retention_free().
 */
void retention_now(struct retention *r, const struct prune_rule *keep, retention_done_fn *fn,
	void *arg);
