/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests of the kind NET_KIND_ARTIFACT to jobsched-net. */
#include "daemon/artifact/artifact_requests.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/loop/net_client.h"
#include <string.h>
#include <unistd.h>

#define BUSY_SHOWN (30 * USEC_SEC) /* longer than the delay between the tries of a run */

struct artifact_requests {
	struct artifact_requests_options o;
	struct err busy;   /* the last result NET_BUSY */
	usec_t busy_at;    /* boottime; 0: none since the last success */
};

static void on_artifact_result(const struct net_result *r, int fd, void *arg)
{
	struct artifact_requests *a = arg;
	struct err why = {};

	if (r->outcome != NET_DONE)
		err_set(&why, r->outcome == NET_BUSY ? ERR_BUSY : ERR_INVALID, "%s", r->error);
	a->busy = why;
	a->busy_at = r->outcome == NET_BUSY ? clock_boot(a->o.clock) : 0;
	a->o.on_done(r->id.id, r->id.attempt, fd, r->outcome == NET_DONE ? NULL : &why, a->o.arg);
}

static void on_need_file(const struct net_id *id, int fd, void *arg)
{
	const struct artifact_requests *a = arg;

	a->o.on_file(id->id, id->attempt, fd, a->o.arg);
}

static void on_hold(struct net_client *c, void *arg)
{
	const struct artifact_requests *a = arg;

	(void)c;
	a->o.on_hold(a->o.arg);
}

bool artifact_requests_get(struct artifact_requests *a, const struct artifact_user *u,
	struct err *e)
{
	const char *texts[4] = {u->url, u->sha256};
	bool storage = text_starts(u->url, "s3://");
	AUTO_TEXT request = NULL;
	struct s3_name name;
	int payload;

	if (storage && (!s3_url_parse(u->url, &name, e) || !s3_url_artifact_check(u->url, a->o.s3_artifacts, e)))
		return false;
	if (storage) {
		texts[2] = request = s3_url_request(&a->o.s3, name.bucket, name.key, NULL);
		texts[3] = a->o.s3.region;
	}
	payload = net_payload_memfd(texts, storage ? 4 : 2, NULL, 0, e);
	if (payload < 0)
		return false;
	net_client_request(a->o.net,
		&(struct net_request){.id = {NET_KIND_ARTIFACT, u->run, u->fence},
			.uid = u->uid,
			.limit = a->o.limit,
			.timeout = a->o.timeout},
		payload);
	return true;
}

void artifact_requests_hold(struct artifact_requests *a, const struct artifact_user *u)
{
	struct net_hold h = {.id = {NET_KIND_ARTIFACT, u->run, u->fence}, .uid = u->uid};

	net_frame_artifact_key(u->url, u->sha256, u->uid, h.key);
	net_client_hold(a->o.net, &h);
}

void artifact_requests_release(struct artifact_requests *a, int64_t run, int64_t fence)
{
	net_client_cancel(a->o.net, &(struct net_id){NET_KIND_ARTIFACT, run, fence});
}

const char *artifact_requests_busy(const struct artifact_requests *a)
{
	if (a->busy_at && clock_boot(a->o.clock) - a->busy_at < BUSY_SHOWN)
		return a->busy.msg;
	return NULL;
}

void artifact_requests_set_limits(struct artifact_requests *a, int64_t limit, usec_t timeout)
{
	a->o.limit = limit;
	a->o.timeout = timeout;
}

struct artifact_requests *artifact_requests_new(const struct artifact_requests_options *o)
{
	struct artifact_requests *a = xcalloc(1, sizeof(*a));

	a->o = *o;
	net_client_kind(o->net, NET_KIND_ARTIFACT,
		&(struct net_client_kind){.result = on_artifact_result,
			.need_file = on_need_file,
			.hold = on_hold,
			.arg = a});
	return a;
}

void artifact_requests_free(struct artifact_requests *a)
{
	free(a);
}
