/* SPDX-License-Identifier: Apache-2.0 */
/* The artifact cache: each artifact is fetched once, checked, and kept while the budget allows. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>

struct cache;
struct err;
struct request;
struct sd_event;

struct cache_options {
	const char *dir;                  /* borrowed until cache_new() returns */
	/*
	 * User mode: jobs run with the uid of the cache and could alter it. The archive is kept, its SHA-256 is checked
	 * before each run, and each run gets a copy of its own. Otherwise all runs share one tree, which is mounted read-only.
	 */
	bool private_copies;
	struct request *const *requests;  /* borrowed: all requests of the daemon */
};
bool cache_new(struct sd_event *ev /* borrowed */, const struct cache_options *o, struct cache **ret, struct err *e);
void cache_free(struct cache *c); /* what is being fetched is given up */
AUTO_DEFINE(cache);

void cache_set_budget(struct cache *c, int64_t bytes);
bool cache_start(struct request *r, struct cache *c, struct err *e); /* later or at once request_end() is called */
void cache_drop(struct request *r, struct cache *c);                 /* the request is about to be removed from the list */
void cache_hold(struct request *r, struct cache *c, const char *key); /* an artifact of an earlier connection is in use */
void cache_synced(struct cache *c);                                  /* what no request uses may be removed now */
