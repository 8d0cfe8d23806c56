/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of artifacts: fetched once, verified, unpacked, kept while there is room. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct artifacts;
struct err;
struct sd_event;

#define ARTIFACT_DIRECTORY "artifacts" /* in the state directory */
#define ARTIFACT_KEY_MAX 96

struct artifacts_options {
	const char *state_dir;  /* borrowed, until artifacts_new() returns */
	int64_t limit;          /* bytes of one, fetched and unpacked */
	int64_t budget;         /* bytes of all that nobody uses; what is used stays */
	usec_t timeout;         /* of one try to fetch */
	bool public_only;       /* files that not everybody may read are refused */
	bool (*in_use)(const char *key, void *arg);
	/* The end of what artifacts_get() left pending; 'why' is NULL when it is there now. On the loop. */
	void (*on_done)(const char *key, const struct err *why, void *arg);
	void *arg;
};
bool artifacts_new(struct sd_event *ev /* borrowed */, const struct artifacts_options *o, struct artifacts **ret, struct err *e);
void artifacts_free(struct artifacts *a); /* what is under way is given up without a word */
AUTO_DEFINE(artifacts);
void artifacts_set_limits(struct artifacts *a, int64_t limit, int64_t budget, usec_t timeout);

/* Who knows both the place and the sum gets what another one has fetched from there. */
char *artifact_key(const char *url, const char *sha256, char out[ARTIFACT_KEY_MAX]);

/* A descriptor of its tree, the caller's; -1: on_done() will say; for several who ask meanwhile once. */
int artifacts_get(struct artifacts *a, const char *url, const char *sha256, uint32_t uid);
