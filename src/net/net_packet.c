/* SPDX-License-Identifier: Apache-2.0 */
/* Puts frames into packets and takes them out. */
#include "net/net_packet.h"
#include "base/auto.h"
#include "base/err.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool net_packet_add(struct net_packet *p, const struct net_frame *f, const void *bytes, size_t len)
{
	uint32_t size = f->size + (uint32_t)len;

	if (len > NET_PACKET_MAX || size > NET_PACKET_MAX - p->len)
		return false;
	memcpy(p->data + p->len, f, f->size);
	memcpy(p->data + p->len + offsetof(struct net_frame, size), &size, sizeof(size));
	if (len > 0)
		memcpy(p->data + p->len + f->size, bytes, len);
	p->len += size;
	return true;
}

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int) * NET_FDS_MAX)];
};

static int bytes_send(int fd, const void *data, size_t len, int passed)
{
	union control control = {};
	struct iovec iov = {(void *)data, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (passed >= 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(c), &passed, sizeof(int));
	}
	do
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int net_packet_send(int fd, struct net_packet *p, int passed)
{
	int r = p->len > 0 ? bytes_send(fd, p->data, p->len, passed) : 0;

	if (r == 0)
		p->len = 0;
	return r;
}

int net_packet_send_frame(int fd, const struct net_frame *f, int passed)
{
	return bytes_send(fd, f, f->size, passed);
}

int net_packet_recv(int fd, struct net_packet *p, int *ret_fd)
{
	union control control = {};
	struct iovec iov = {p->data, sizeof(p->data)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	AUTO_FD passed = -1;
	ssize_t len;

	do
		len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
			c->cmsg_len == CMSG_LEN(sizeof(int)) && passed < 0)
			memcpy(&passed, CMSG_DATA(c), sizeof(int));
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EBADMSG;
	p->len = (size_t)len;
	*ret_fd = STEAL_FD(passed);
	return 0;
}

bool net_packet_next(const struct net_packet *p, size_t *at, size_t fds, enum net_frame_from from, uint32_t version,
	struct net_received *ret, struct err *e)
{
	const char *from_here = p->data + *at;
	size_t left = p->len - *at, len = left;
	uint32_t size = 0;

	if (version >= NET_FRAME_VERSION_BATCH && left >= NET_FRAME_HEAD) {
		memcpy(&size, from_here + offsetof(struct net_frame, size), sizeof(size));
		if (size < left && fds == 0)
			len = size;
	}
	memcpy(&ret->frame, from_here, len < sizeof(ret->frame) ? len : sizeof(ret->frame));
	if (!net_frame_check(&ret->frame, len, fds, from, version, e))
		return false;
	ret->len = net_frame_bytes(&ret->frame);
	ret->bytes = from_here + len - ret->len;
	*at += len;
	return true;
}
