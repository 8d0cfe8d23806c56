/* SPDX-License-Identifier: Apache-2.0 */
/* Receives a file that a child of the spawner has opened as the owner of a job. */
#include "net/opened_file.h"
#include "base/auto.h"
#include "base/file/plain_file.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

int opened_file_receive(int from, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	int32_t error = 0;
	struct iovec iov = {&error, sizeof(error)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	AUTO_FD fd = -1;

	*ret_fd = -1;
	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != (ssize_t)sizeof(error))
		return EIO;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	if (!error)
		error = fd < 0 ? EIO : -plain_file_check(fd); /* the child has checked it, too */
	if (!error)
		*ret_fd = STEAL_FD(fd);
	return error;
}
