/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, sends and receives the frames of jobsched-net. */
#include "net/net_frame.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAYLOAD_MAGIC UINT32_C(0x31706e6a) /* "jnp1" */
#define DURATION_MAX (INT64_C(36525) * USEC_DAY)
#define BYTES_MAX (INT64_C(1) << 50)

struct range {
	size_t offset;
	int64_t min, max;
	const char *name;
};

struct layout {
	const char *name;
	size_t body;
	enum net_frame_from from;
	bool handshake;
	size_t text, text_size; /* offset and size of its text; size 0: none */
	struct range ranges[8];
};

#define BODY(member) sizeof(((struct net_frame *)0)->member)
#define NUMBER(body, member, lo, hi) {offsetof(struct net_frame, body.member), lo, hi, #member}
#define ID(at) NUMBER(at, kind, 1, NET_KIND_MAX - 1), NUMBER(at, id, 1, INT64_MAX), NUMBER(at, attempt, 0, INT64_MAX)
#define TEXT(body, member) offsetof(struct net_frame, body.member), sizeof(((struct net_frame *)0)->body.member)

static const struct layout layouts[NET_FRAME_TYPE_MAX] = {
	[NET_HELLO] = {"hello", BODY(hello), NET_FROM_DAEMON, true, TEXT(hello, node), {}},
	[NET_SETTINGS] = {"settings", BODY(settings), NET_FROM_DAEMON, false, 0, 0, {NUMBER(settings, budget, 0, BYTES_MAX)}},
	[NET_HOLD] = {"hold", BODY(hold), NET_FROM_DAEMON, false, TEXT(hold, key),
		{ID(hold.id), NUMBER(hold, uid, 0, UINT32_MAX)}},
	[NET_REQUEST] = {"request", BODY(request), NET_FROM_DAEMON, false, 0, 0,
		{ID(request.id), NUMBER(request, uid, 0, UINT32_MAX), NUMBER(request, limit, 0, BYTES_MAX),
			NUMBER(request, timeout, 1, DURATION_MAX)}},
	[NET_SYNC] = {"sync", 0, NET_FROM_DAEMON, false, 0, 0, {}},
	[NET_CANCEL] = {"cancel", BODY(id), NET_FROM_DAEMON, false, 0, 0, {ID(id)}},
	[NET_ACK] = {"ack", BODY(id), NET_FROM_DAEMON, false, 0, 0, {ID(id)}},
	[NET_WELCOME] = {"welcome", BODY(welcome), NET_FROM_NET, true, 0, 0, {}},
	[NET_REFUSED] = {"refused", BODY(refused), NET_FROM_NET, true, TEXT(refused, error), {}},
	[NET_RESULT] = {"result", BODY(result), NET_FROM_NET, false, TEXT(result, error),
		{ID(result.id), NUMBER(result, outcome, 0, NET_OUTCOME_MAX - 1)}},
	[NET_HAS] = {"has", BODY(id), NET_FROM_NET, false, 0, 0, {ID(id)}},
	[NET_SYNCED] = {"synced", 0, NET_FROM_NET, false, 0, 0, {}},
	[NET_NEED_FILE] = {"need_file", BODY(id), NET_FROM_NET, false, 0, 0, {ID(id)}},
	[NET_SUPERSEDED] = {"superseded", 0, NET_FROM_NET, false, 0, 0, {}},
};
_Static_assert(NET_FRAME_HEAD == 8, "frames have no padding");

void net_frame_init(struct net_frame *f, enum net_frame_type type, uint32_t version)
{
	memset(f, 0, sizeof(*f));
	f->type = (uint16_t)type;
	f->version = layouts[type].handshake ? 0 : (uint16_t)version;
	f->size = (uint32_t)(NET_FRAME_HEAD + layouts[type].body);
}

void net_frame_text(char *to, size_t size, const char *text)
{
	memset(to, 0, size);
	if (text)
		memcpy(to, text, strnlen(text, size - 1));
}

bool net_frame_id_equal(const struct net_id *a, const struct net_id *b)
{
	return a->kind == b->kind && a->id == b->id && a->attempt == b->attempt;
}

/* A text ends with a NUL and is padded with NULs, so that no stale bytes of the sender's memory travel along. */
static bool net_text_valid(const char *s, size_t size)
{
	size_t len = strnlen(s, size);

	for (size_t i = len; i < size; i++)
		if (s[i])
			return false;
	return len < size;
}

static bool net_body_check(const struct net_frame *f, const struct layout *l, struct err *e)
{
	const char *base = (const char *)f;

	for (const struct range *r = l->ranges; r < l->ranges + ELEMENTS(l->ranges) && r->name; r++) {
		int64_t n;

		memcpy(&n, base + r->offset, sizeof(n));
		if (n < r->min || n > r->max)
			return err_set(e, ERR_INVALID, "frame '%s': %s %" PRId64 " is out of range", l->name, r->name, n);
	}
	if (l->text_size && !net_text_valid(base + l->text, l->text_size))
		return err_set(e, ERR_INVALID, "frame '%s': its text is not terminated", l->name);
	if (f->type == NET_HELLO && (f->hello.oldest < 1 || f->hello.newest < f->hello.oldest))
		return err_set(e, ERR_INVALID, "frame 'hello': versions %u to %u", f->hello.oldest, f->hello.newest);
	return true;
}

static size_t net_fds_expected(const struct net_frame *f)
{
	if (f->type == NET_RESULT)
		return f->result.id.kind == NET_KIND_ARTIFACT && f->result.outcome == NET_DONE;
	return f->type == NET_REQUEST || f->type == NET_NEED_FILE;
}

bool net_frame_check(const struct net_frame *f, size_t len, size_t fds, enum net_frame_from from, uint32_t version,
	struct err *e)
{
	const struct layout *l = len >= NET_FRAME_HEAD && f->type < NET_FRAME_TYPE_MAX ? &layouts[f->type] : NULL;

	if (!l || !l->name || l->from != from)
		return err_set(e, ERR_INVALID, "a packet of %zu bytes is not a frame of that side", len);
	if (len != f->size || len != NET_FRAME_HEAD + l->body)
		return err_set(e, ERR_INVALID, "frame '%s' of %zu bytes instead of %zu", l->name, len, NET_FRAME_HEAD + l->body);
	if (l->handshake != (version == 0) || f->version != version)
		return err_set(e, ERR_INVALID, "frame '%s' of version %u where %u was agreed", l->name, f->version, version);
	if (!net_body_check(f, l, e))
		return false;
	if (fds != net_fds_expected(f))
		return err_set(e, ERR_INVALID, "frame '%s' with %zu descriptors", l->name, fds);
	return true;
}

/* ---- the socket ---- */

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int) * NET_FDS_MAX)];
};

int net_frame_send(int fd, const struct net_frame *f, int passed)
{
	union control control = {};
	struct iovec iov = {(void *)f, f->size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (passed >= 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(c), &passed, sizeof(int));
	}
	do
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int net_frame_recv(int fd, struct net_frame *f, size_t *ret_len, int *ret_fd)
{
	union control control = {};
	struct iovec iov = {f, sizeof(*f)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	AUTO_FD passed = -1;
	ssize_t len;

	do
		len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)) && passed < 0)
			memcpy(&passed, CMSG_DATA(c), sizeof(int));
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EBADMSG;
	*ret_len = (size_t)len;
	*ret_fd = STEAL_FD(passed);
	return 0;
}

/* ---- payloads ---- */

struct payload_head {
	uint32_t magic, texts, body_len, reserved;
};

int net_payload_memfd(const char *const *texts, size_t n, const void *body, size_t len, struct err *e)
{
	struct payload_head head = {.magic = PAYLOAD_MAGIC, .texts = (uint32_t)n, .body_len = (uint32_t)len};
	AUTO_DONE(buf) b = {};
	int fd;

	buf_add(&b, &head, sizeof(head));
	for (size_t i = 0; i < n; i++)
		buf_add(&b, texts[i], strlen(texts[i]) + 1);
	if (len)
		buf_add(&b, body, len);
	if (n > NET_TEXTS_MAX || b.len > NET_PAYLOAD_MAX) {
		err_set(e, ERR_TOO_LARGE, "a request to jobsched-net has at most %zu bytes", NET_PAYLOAD_MAX);
		return -1;
	}
	fd = io_memfd_sealed("jobsched-net-request", b.data, b.len);
	if (fd < 0)
		err_errno(e, -fd, "could not make a memory file");
	return fd < 0 ? -1 : fd;
}

static bool sealed_size(int fd, size_t *ret, struct err *e)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(struct payload_head) ||
		st.st_size > (off_t)NET_PAYLOAD_MAX)
		return err_set(e, ERR_INVALID, "the payload is not a sealed memory file of at most %zu bytes", NET_PAYLOAD_MAX);
	*ret = (size_t)st.st_size;
	return true;
}

static bool payload_split(struct net_payload *p, size_t size, struct err *e)
{
	struct payload_head head;
	const char *at = p->data + sizeof(head), *end = p->data + size;

	memcpy(&head, p->data, sizeof(head));
	if (head.magic != PAYLOAD_MAGIC || head.texts > NET_TEXTS_MAX || head.reserved)
		return err_set(e, ERR_INVALID, "the head of the payload is out of range");
	for (; p->n < head.texts; p->n++) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));

		if (!nul)
			return err_set(e, ERR_INVALID, "a text of the payload is not terminated");
		p->texts[p->n] = at;
		at = nul + 1;
	}
	p->body = at;
	p->body_len = (size_t)(end - at);
	return p->body_len == head.body_len || err_set(e, ERR_INVALID, "the payload does not have the size it says");
}

bool net_payload_read(struct net_payload *ret, int fd, struct err *e)
{
	AUTO_DONE(net_payload) p = {};
	size_t size = 0, got = 0;

	if (!sealed_size(fd, &size, e))
		return false;
	p.data = xcalloc(1, size + 1);
	while (got < size) {
		ssize_t n = pread(fd, p.data + got, size - got, (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(e, n < 0 ? errno : EIO, "could not read the payload");
		got += (size_t)n;
	}
	if (!payload_split(&p, size, e))
		return false;
	*ret = p;
	p = (struct net_payload){};
	return true;
}

void net_payload_done(struct net_payload *p)
{
	free(p->data);
	*p = (struct net_payload){};
}

char *net_frame_artifact_key(const char *url, const char *sha256, int64_t uid, char out[NET_KEY_MAX])
{
	AUTO_TEXT place = text_starts(url, "file:") ? xprintf("%" PRId64 " %s", uid, url) : xstrdup(url);
	unsigned char sum[SHA256_LEN];
	char hex[SHA256_HEX];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, place, strlen(place));
	sha256_end(&s, sum);
	snprintf(out, NET_KEY_MAX, "%.64s-%.16s", sha256, sha256_hex(sum, hex));
	return out;
}
