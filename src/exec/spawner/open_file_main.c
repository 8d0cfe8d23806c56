/* SPDX-License-Identifier: Apache-2.0 */
/* Main function of the process that opens a file as the owner of a job. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/file/plain_file.h"
#include "exec/spawner/open_file.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMEOUT_SECONDS 20 /* the spawner normally kills the process after 10 s */

/* Magic links of procfs could lead to descriptors of this process, so they are not followed. */
static int plain_file_open(const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_NO_MAGICLINKS};
	AUTO_FD fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	int r;

	if (fd < 0)
		return -errno;
	r = plain_file_check(fd);
	return r < 0 ? r : STEAL_FD(fd);
}

int open_file_main(void)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	int32_t error = 0;
	struct iovec iov = {&error, sizeof(error)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	AUTO_DONE(buf) path = {};
	AUTO_FD fd = -1;

	alarm(TIMEOUT_SECONDS);
	if (io_read_all(0, &path, OPEN_FILE_PAYLOAD_MAX) < 0 || path.len == 0 ||
		path.data[path.len - 1] != '\0')
		return 1;
	fd = plain_file_open(path.data);
	if (fd < 0) {
		error = -fd;
	} else {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(1, &msg, MSG_NOSIGNAL) < 0;
}
