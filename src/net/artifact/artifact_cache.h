/* SPDX-License-Identifier: Apache-2.0 */
/* The artifact cache, which downloads each artifact once. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>

struct artifact_cache;
struct aws_credentials;
struct err;
struct request;
struct sd_event;

struct artifact_cache_options {
	const char *dir;                  /* borrowed until artifact_cache_new() returns */
	/*
	 * In user mode jobs run with the uid of the cache and could alter it. So the cache keeps
	 * the archive, checks its SHA-256 before each run, and unpacks a private copy per run.
	 * Otherwise all runs share one tree, which is mounted read-only.
	 */
	bool private_copies;
	struct aws_credentials *aws;      /* borrowed; for artifacts in S3-compatible storage */
	struct request *const *requests;  /* borrowed: all requests of the daemon */
};
bool artifact_cache_new(struct sd_event *ev /* borrowed */, const struct artifact_cache_options *o,
	struct artifact_cache **ret, struct err *e);
void artifact_cache_free(struct artifact_cache *c); /* gives up downloads that are not finished */
AUTO_DEFINE(artifact_cache);

void artifact_cache_set_budget(struct artifact_cache *c, int64_t bytes);
/* request_end() is called at once or later */
bool artifact_cache_start(struct request *r, struct artifact_cache *c, struct err *e);
/* called before the request is removed from the list */
void artifact_cache_drop(struct request *r, struct artifact_cache *c);
/* the request uses an artifact since an earlier connection */
void artifact_cache_hold(struct request *r, struct artifact_cache *c, const char *key);
/* all requests are known: unused artifacts may be removed from now on */
void artifact_cache_synced(struct artifact_cache *c);
