/* SPDX-License-Identifier: Apache-2.0 */
/* Requests the artifacts of runs from jobsched-net. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/target/s3_url.h"
#include <stdbool.h>
#include <stdint.h>

struct artifact_requests;
struct err;
struct net_client;

struct artifact_requests_options {
	const struct clock *clock; /* borrowed */
	struct net_client *net;  /* borrowed */
	int64_t limit;           /* bytes of one artifact, both downloaded and unpacked */
	usec_t timeout;          /* of one download attempt */
	struct s3_place s3;      /* where the buckets of 's3:' artifacts are */
	const char *s3_artifacts; /* borrowed: buckets that are allowed; NULL: none */
	/*
	 * The result of artifact_requests_get(). 'tree' is the directory of the artifact and is
	 * moved; -1: 'why' has the reason, where ERR_BUSY means that a later try may succeed. Never
	 * called from inside artifact_requests_get().
	 */
	void (*on_done)(int64_t run, int64_t fence, int tree, const struct err *why, void *arg);
	/* Has the spawner open the file of the run's artifact and send it to 'socket'. */
	void (*on_file)(int64_t run, int64_t fence, int socket /* moved */, void *arg);
	/* Call artifact_requests_hold() for each run that uses an artifact. */
	void (*on_hold)(void *arg);
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
bool artifact_requests_get(struct artifact_requests *a, const struct artifact_user *u,
	struct err *e);
void artifact_requests_hold(struct artifact_requests *a, const struct artifact_user *u);
/* May be called for an artifact that was never requested. */
void artifact_requests_release(struct artifact_requests *a, int64_t run, int64_t fence);
/* Why artifacts are delayed at the moment; NULL: no reason is known. */
const char *artifact_requests_busy(const struct artifact_requests *a);
