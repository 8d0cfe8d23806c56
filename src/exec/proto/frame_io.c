/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers frames with their file descriptors over a socket. */
#include "exec/proto/frame.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int) * FRAME_FDS_MAX)];
};

int frame_send(int fd, const struct frame *f, const int *fds, size_t n)
{
	union control control = {};
	struct iovec iov = {(void *)f, f->size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (n) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * n)};
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	}
	do
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static size_t frame_fds_received(struct msghdr *msg, int fds[FRAME_FDS_MAX])
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < here && n < FRAME_FDS_MAX; i++)
			memcpy(&fds[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return n;
}

int frame_recv(int fd, struct frame *f, size_t *ret_len, int fds[FRAME_FDS_MAX], size_t *ret_n)
{
	union control control = {};
	struct iovec iov = {f, sizeof(*f)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t len;

	do
		len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	*ret_n = frame_fds_received(&msg, fds);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		frame_fds_close(fds, *ret_n);
		return -EBADMSG;
	}
	*ret_len = (size_t)len;
	return 0;
}

void frame_fds_close(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}
