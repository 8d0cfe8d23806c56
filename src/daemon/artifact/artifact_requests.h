/* SPDX-License-Identifier: Apache-2.0 */
/* Asks jobsched-net for the artifacts of runs, and tells it when a run does not need its artifact any more. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct artifact_requests;
struct err;
struct net_client;

struct artifact_requests_options {
	const struct clock *clock; /* borrowed */
	struct net_client *net;  /* borrowed */
	int64_t limit;           /* bytes of one artifact, fetched and unpacked */
	usec_t timeout;          /* of one try to fetch */
	/*
	 * The end of artifacts_get(). 'tree' is moved and -1 if there is a reason in 'why'; ERR_BUSY: it can be tried again
	 * later. Called from the loop, never from inside artifacts_get().
	 */
	void (*on_done)(int64_t run, int64_t fence, int tree, const struct err *why, void *arg);
	void (*on_file)(int64_t run, int64_t fence, int socket /* moved */, void *arg); /* its file is to be sent there */
	void (*on_hold)(void *arg); /* artifacts_hold() is to be called for each run that uses an artifact */
	void *arg;
};
struct artifact_requests *artifact_requests_new(const struct artifact_requests_options *o);
void artifact_requests_free(struct artifact_requests *a);
AUTO_DEFINE(artifact_requests);
void artifact_requests_set_limits(struct artifact_requests *a, int64_t limit, usec_t timeout);

struct artifact_user {
	int64_t run, fence, uid;
	const char *url, *sha256;
};
bool artifact_requests_get(struct artifact_requests *a, const struct artifact_user *u, struct err *e);
void artifact_requests_hold(struct artifact_requests *a, const struct artifact_user *u);
void artifact_requests_release(struct artifact_requests *a, int64_t run, int64_t fence); /* one that was never asked for is fine */
/* Why artifacts have to wait at the moment; NULL: nothing is known to be in the way. */
const char *artifact_requests_busy(const struct artifact_requests *a);
