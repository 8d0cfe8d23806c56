/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes the payload of a request; decodes it. */
#include "net/net_payload.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAYLOAD_MAGIC UINT32_C(0x31706e6a) /* "jnp1" */

struct payload_head {
	uint32_t magic, texts, body_len, reserved;
};

bool net_payload_encode(const char *const *texts, size_t n, const void *body, size_t len, struct buf *ret, struct err *e)
{
	struct payload_head head = {
		.magic = PAYLOAD_MAGIC, .texts = (uint32_t)n, .body_len = (uint32_t)len};

	buf_clear(ret);
	buf_add(ret, &head, sizeof(head));
	for (size_t i = 0; i < n; i++)
		buf_add(ret, texts[i], strlen(texts[i]) + 1);
	if (len)
		buf_add(ret, body, len);
	return (n <= NET_TEXTS_MAX && ret->len <= NET_PAYLOAD_MAX) ||
		err_set(e, ERR_TOO_LARGE, "a request to jobsched-net has at most %zu bytes", NET_PAYLOAD_MAX);
}

int net_payload_memfd(
	const char *const *texts, size_t n, const void *body, size_t len, struct err *e)
{
	AUTO_DONE(buf) b = {};
	int fd;

	if (!net_payload_encode(texts, n, body, len, &b, e))
		return -1;
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

	if (seals < 0 || (seals & wanted) != wanted || fstat(fd, &st) < 0 ||
		st.st_size < (off_t)sizeof(struct payload_head) ||
		st.st_size > (off_t)NET_PAYLOAD_MAX)
		return err_set(e, ERR_INVALID,
			"the payload is not a sealed memory file of at most %zu bytes",
			NET_PAYLOAD_MAX);
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
	return p->body_len == head.body_len ||
		err_set(e, ERR_INVALID, "the payload does not have the size it says");
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

bool net_payload_copy(struct net_payload *ret, const void *data, size_t len, struct err *e)
{
	AUTO_DONE(net_payload) p = {};

	if (len < sizeof(struct payload_head))
		return err_set(e, ERR_INVALID, "the payload has no head");
	p.data = xcalloc(1, len + 1);
	memcpy(p.data, data, len);
	if (!payload_split(&p, len, e))
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
