/* SPDX-License-Identifier: Apache-2.0 */
/* Sends storage requests to jobsched-net and repeats those that failed temporarily. */
#include "daemon/archive/s3_client.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/net_client.h"
#include "daemon/metrics/metrics.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#define PUT_TRIES 5            /* the delays between them are 1, 2, 4 and 8 s */
#define GET_TRIES 2
#define READS_MAX 128          /* requests at a time, of all clients */
#define FIRST_DELAY USEC_SEC
#define TIMEOUT (60 * USEC_SEC) /* of one try, besides the time for the bytes */
#define SLOW_RATE (64 << 10)    /* bytes per second that an upload has at least */

struct s3_client {
	sd_event *ev;             /* borrowed */
	struct s3_client_options o;
	struct s3_name name;      /* of the archive */
	char *prefix;             /* owned; empty: none */
	int64_t next_id, random;
	struct s3_call *calls;
	struct err error;
	usec_t failing_since;     /* wall clock; 0: not */
	struct log_repeat repeat;
};

struct s3_call {
	struct s3_client *client;
	struct net_id id;
	enum s3_verb verb;
	usec_t timeout;
	int payload;              /* owned */
	int file;                 /* owned; -1: none */
	unsigned tries, tries_max;
	sd_event_source *timer;   /* before a retry */
	s3_client_fn *fn;
	void *arg;
	struct s3_call *next;
};

static void call_free(struct s3_call *call)
{
	struct s3_call **at = &call->client->calls;

	while (*at && *at != call)
		at = &(*at)->next;
	if (*at)
		*at = call->next;
	sd_event_source_disable_unref(call->timer);
	auto_fd_close(&call->payload);
	auto_fd_close(&call->file);
	free(call);
}

void s3_client_cancel(struct s3_call *call)
{
	if (!call)
		return;
	net_client_cancel(call->client->o.net, &call->id);
	call_free(call);
}

/* ---- sending ---- */

static void call_send(struct s3_call *call)
{
	struct s3_client *c = call->client;

	call->id = (struct net_id){NET_KIND_S3, c->next_id++, c->random};
	call->tries++;
	net_client_request(c->o.net, &(struct net_request){.id = call->id, .timeout = call->timeout}, dup(call->payload));
}

static int on_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	struct s3_call *call = arg;

	(void)source;
	(void)usec;
	call->timer = sd_event_source_disable_unref(call->timer);
	call_send(call);
	return 0;
}

static int on_bad_payload(sd_event_source *source, uint64_t usec, void *arg);

static struct s3_call *call_new(struct s3_client *c, const struct s3_payload *p, const struct s3_upload *u, s3_client_fn *fn,
	void *arg)
{
	struct s3_call *call = xcalloc(1, sizeof(*call));
	struct err e = {};

	*call = (struct s3_call){.client = c, .verb = p->verb, .timeout = TIMEOUT, .file = u ? u->file : -1, .fn = fn, .arg = arg,
		.next = c->calls};
	call->tries_max = p->verb == S3_GET || p->verb == S3_LIST ? GET_TRIES : PUT_TRIES;
	c->calls = call;
	for (size_t i = 0; i < p->parts_n; i++)
		call->timeout += p->parts[i].length / SLOW_RATE * USEC_SEC;
	call->payload = s3_payload_memfd(p, u ? u->body : NULL, u ? u->len : 0, &e);
	if (call->payload >= 0)
		call_send(call);
	else
		sd_event_add_time_relative(c->ev, &call->timer, CLOCK_BOOTTIME, 0, 1, on_bad_payload, call);
	return call;
}

static char *object_url(const struct s3_client *c, const char *name, const char *query)
{
	AUTO_TEXT key = xprintf("%s%s%s", c->prefix, *c->prefix && *name ? "/" : "", name);

	return s3_url_request(&c->o.place, c->name.bucket, query ? "" : key, query);
}

struct s3_call *s3_client_put(struct s3_client *c, const struct s3_upload *u, s3_client_fn *fn, void *arg)
{
	AUTO_TEXT url = object_url(c, u->name, NULL);
	struct s3_payload p = {.verb = u->body ? S3_PUT : S3_PUT_FILE, .url = url, .region = c->o.place.region, .sha256 = u->sha256};

	for (; p.parts_n < u->parts_n; p.parts_n++)
		p.parts[p.parts_n] = u->parts[p.parts_n];
	return call_new(c, &p, u, fn, arg);
}

struct s3_call *s3_client_get(struct s3_client *c, const char *name, int64_t from, int64_t length, s3_client_fn *fn, void *arg)
{
	AUTO_TEXT url = object_url(c, name, NULL);

	return call_new(c, &(struct s3_payload){.verb = S3_GET, .url = url, .region = c->o.place.region, .from = from, .length = length},
		NULL, fn, arg);
}

struct s3_call *s3_client_list(struct s3_client *c, const char *start, const char *after, int max, s3_client_fn *fn, void *arg)
{
	const char *slash = *c->prefix ? "/" : "";
	AUTO_TEXT prefix = xprintf("%s%s%s", c->prefix, slash, start);
	AUTO_TEXT from = xprintf("%s%s%s", c->prefix, slash, after);
	AUTO_DONE(buf) query = {};
	AUTO_TEXT url = NULL;

	buf_printf(&query, "list-type=2&max-keys=%d&prefix=", max); /* sorted by name, as the signature requires */
	s3_url_encode(&query, prefix, false);
	if (*after) {
		buf_str(&query, "&start-after=");
		s3_url_encode(&query, from, false);
	}
	url = object_url(c, "", query.data);
	return call_new(c, &(struct s3_payload){.verb = S3_LIST, .url = url, .region = c->o.place.region}, NULL, fn, arg);
}

const char *s3_client_name(const struct s3_client *c, const char *key)
{
	size_t len = strlen(c->prefix);

	if (len == 0)
		return key;
	return strncmp(key, c->prefix, len) == 0 && key[len] == '/' ? key + len + 1 : NULL;
}

/* ---- results ---- */

static void note_result(struct s3_client *c, const struct err *e)
{
	if (!e->kind || e->kind == ERR_NOT_FOUND) {
		if (c->failing_since)
			log_info("the archive '%s' is available again", c->o.archive);
		c->failing_since = 0;
		return;
	}
	if (!c->failing_since) {
		c->failing_since = clock_now(c->o.clock);
		c->repeat = (struct log_repeat){};
	}
	c->error = *e;
	log_line(log_repeat(&c->repeat, clock_boot(c->o.clock)), NULL, "the archive '%s' cannot be used: %s", c->o.archive, e->msg);
}

/* Frees the call. */
static void call_end(struct s3_call *call, const struct s3_answer *a)
{
	struct s3_client *c = call->client;
	s3_client_fn *fn = call->fn;
	void *arg = call->arg;

	if (call->verb == S3_PUT || call->verb == S3_PUT_FILE)
		metrics_add(c->o.metrics, METRIC_ARCHIVE_UPLOADS, a->e.kind ? METRIC_FAILED : METRIC_OK, 0, 1);
	note_result(c, &a->e);
	call_free(call);
	fn(a, arg);
}

static int on_bad_payload(sd_event_source *source, uint64_t usec, void *arg)
{
	struct s3_answer a = {};

	(void)source;
	(void)usec;
	err_set(&a.e, ERR_TOO_LARGE, "an object of the archive is larger than a request to jobsched-net");
	call_end(arg, &a);
	return 0;
}

static void call_judge(const struct s3_call *call, struct s3_answer *a)
{
	const struct s3_result *r = &a->r;

	if (r->status == 200 || r->status == 204 || r->status == 206)
		return;
	if (r->status == 404 && call->verb == S3_GET && !text_starts(r->message, "NoSuchBucket"))
		err_set(&a->e, ERR_NOT_FOUND, "the archive has no such object");
	else if (r->status == 416)
		a->r.body_len = 0; /* a range after the end */
	else
		err_set(&a->e, ERR_UNREACHABLE, "the storage answered %" PRId64 " %s", r->status, r->message);
}

static void call_answered(struct s3_call *call, int fd)
{
	AUTO_DONE(net_payload) payload = {};
	struct s3_answer a = {};

	if (net_payload_read(&payload, fd, &a.e) && s3_result_parse(&payload, &a.r, &a.e))
		call_judge(call, &a);
	call_end(call, &a);
}

static struct s3_call *call_find(const struct s3_client *c, const struct net_id *id)
{
	struct s3_call *call = c->calls;

	while (call && !net_frame_id_equal(&call->id, id))
		call = call->next;
	return call;
}

static void on_s3_result(const struct net_result *r, int fd, void *arg)
{
	struct s3_client *c = arg;
	struct s3_call *call = call_find(c, &r->id);
	AUTO_FD answer = fd;
	struct s3_answer a = {};

	net_client_ack(c->o.net, &r->id);
	if (!call || call->timer)
		return;
	if (r->outcome == NET_DONE) {
		call_answered(call, answer);
		return;
	}
	err_set(&a.e, ERR_UNREACHABLE, "%s", r->error);
	if (r->outcome == NET_BUSY && call->tries < call->tries_max &&
		sd_event_add_time_relative(c->ev, &call->timer, CLOCK_BOOTTIME, (uint64_t)(FIRST_DELAY << (call->tries - 1)), 1, on_retry,
			call) >= 0) {
		log_debug("a request to the archive is repeated: %s", r->error);
		return;
	}
	call_end(call, &a);
}

/* Sends the file of an upload to jobsched-net. */
static void on_s3_need_file(const struct net_id *id, int fd, void *arg)
{
	const struct s3_call *call = call_find(arg, id);
	AUTO_FD to = fd; /* if it is closed unused, jobsched-net ends the request */
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c;

	if (!call || call->file < 0)
		return;
	c = CMSG_FIRSTHDR(&msg);
	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(c), &call->file, sizeof(int));
	(void)!sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool s3_client_busy(const struct s3_client *c, struct err *ret)
{
	size_t reads = 0;

	for (const struct s3_call *call = c->calls; call; call = call->next)
		reads += call->verb == S3_GET || call->verb == S3_LIST;
	return reads >= READS_MAX && !err_set(ret, ERR_BUSY, "too many clients read the archive; try again");
}

usec_t s3_client_failing(const struct s3_client *c, struct err *ret)
{
	if (c->failing_since)
		*ret = c->error;
	return c->failing_since;
}

struct s3_client *s3_client_new(struct sd_event *ev, const struct s3_client_options *o)
{
	struct s3_client *c = xcalloc(1, sizeof(*c));
	struct err e = {};

	c->ev = ev;
	c->o = *o;
	s3_url_parse(o->archive, &c->name, &e);
	c->prefix = xstrdup(c->name.key);
	if (*c->prefix && c->prefix[strlen(c->prefix) - 1] == '/')
		c->prefix[strlen(c->prefix) - 1] = '\0';
	/* jobsched-net may still have requests of an earlier daemon */
	c->next_id = clock_now(o->clock);
	io_random(&c->random, sizeof(c->random));
	c->random &= INT64_MAX;
	net_client_kind(o->net, NET_KIND_S3,
		&(struct net_client_kind){.result = on_s3_result, .need_file = on_s3_need_file, .arg = c});
	return c;
}

void s3_client_free(struct s3_client *c)
{
	struct s3_answer a = {};

	if (!c)
		return;
	err_set(&a.e, ERR_BUSY, "the daemon ends");
	while (c->calls) {
		s3_client_fn *fn = c->calls->fn;
		void *arg = c->calls->arg;

		call_free(c->calls);
		fn(&a, arg);
	}
	free(c->prefix);
	free(c);
}
