/* SPDX-License-Identifier: Apache-2.0 */
/* The artifact cache: each artifact is fetched once, checked, and kept while the budget allows. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>

struct artifact_cache;
struct err;
struct request;
struct sd_event;

struct artifact_cache_options {
	const char *dir;                  /* borrowed until artifact_cache_new() returns */
	/*
	 * User mode: jobs run with the uid of the cache and could alter it. The archive is kept, its SHA-256 is checked
	 * before each run, and each run gets a copy of its own. Otherwise all runs share one tree, which is mounted read-only.
	 */
	bool private_copies;
	struct request *const *requests;  /* borrowed: all requests of the daemon */
};
bool artifact_cache_new(struct sd_event *ev /* borrowed */, const struct artifact_cache_options *o, struct artifact_cache **ret, struct err *e);
void artifact_cache_free(struct artifact_cache *c); /* what is being fetched is given up */
AUTO_DEFINE(artifact_cache);

void artifact_cache_set_budget(struct artifact_cache *c, int64_t bytes);
bool artifact_cache_start(struct request *r, struct artifact_cache *c, struct err *e); /* later or at once request_end() is called */
void artifact_cache_drop(struct request *r, struct artifact_cache *c);                 /* the request is about to be removed from the list */
void artifact_cache_hold(struct request *r, struct artifact_cache *c, const char *key); /* an artifact of an earlier connection is in use */
void artifact_cache_synced(struct artifact_cache *c);                                  /* what no request uses may be removed now */
