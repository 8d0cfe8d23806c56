/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps history within its limits: a pass now and then, in small steps, archived before it is deleted. */
#pragma once
#include "base/auto.h"
#include "store/read/prune_candidates.h"
#include <stdbool.h>
#include <stddef.h>

struct clock;
struct err;
struct retention;
struct sd_event;
struct store_thread;

struct retention_limits {
	struct prune_rule keep;
	int64_t store_budget;   /* bytes; 0: none */
	int64_t owner_store_limit; /* of one owner but root; 0: none */
	int64_t output_budget;
};
struct retention_options {
	const struct clock *clock;
	struct store_thread *store;
	struct retention_limits limits;
	const char *archive;    /* borrowed: directory; NULL: nothing is archived */
	bool (*may)(void *arg); /* whether passes are this node's to do: the leader's */
	int output_dir;         /* to find what no run owns any more */
	/* The spawner removes a file of output; false: it is not there, try later. */
	bool (*forget)(int64_t run, int64_t attempt, void *arg);
	void *arg;
};

/* What a pass did. */
struct retention_report {
	int64_t runs, jobs, events, outputs, output_bytes;
	bool ok;
	char why[512];          /* when not ok */
};
typedef void retention_done_fn(const struct retention_report *r, void *arg);

bool retention_new(struct sd_event *ev, const struct retention_options *o, struct retention **ret, struct err *e);
void retention_free(struct retention *r); /* after the store thread */
AUTO_DEFINE(retention);
struct prune_rule retention_rule(const struct retention *r);
void retention_stop(struct retention *r); /* before the store thread ends: nothing more is begun */
void retention_set_limits(struct retention *r, const struct retention_limits *l);

/* A pass at once, after the one that goes on. 'fn' is called in any case, at the latest when all ends. */
void retention_now(struct retention *r, const struct prune_rule *keep, retention_done_fn *fn, void *arg);
