/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the spawner to make or verify a warrant. */
#include "exec/proto/warrant_client.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "exec/proto/frame.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ANSWER_TIMEOUT_MS 10000

/* A process of another user that listens at this path could declare any warrant valid. */
static bool peer_is_root(int fd, const char *path, struct err *e)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return err_errno(e, errno,
			"could not read the uid of the process that listens at '%s'", path);
	return cred.uid == 0 || err_set(e, ERR_DENIED, "uid %u, not root, listens at '%s': warrants from it are not accepted",
					(unsigned)cred.uid, path);
}

static bool warrant_socket_connect(const char *path, int *ret, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		return err_set(e, ERR_INVALID, "the socket path '%s' is too long", path);
	memcpy(a.sun_path, path, strlen(path));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return err_set(e, ERR_UNREACHABLE, "a warrant is needed, but no spawner listens at '%s': %s", path,
			strerror(errno));
	if (!peer_is_root(fd, path, e))
		return false;
	*ret = STEAL_FD(fd);
	return true;
}

static bool warrant_exchange(int fd, struct frame *f, int subject, struct err *e)
{
	int fds[FRAME_FDS_MAX], r = frame_send(fd, f, &subject, 1);
	size_t len = 0, n = 0;

	if (r < 0)
		return err_errno(e, -r, "could not ask the spawner for a warrant");
	if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ANSWER_TIMEOUT_MS) != 1)
		return err_set(e, ERR_UNREACHABLE, "the spawner does not answer");
	r = frame_recv(fd, f, &len, fds, &n);
	if (r < 0 || len == 0)
		return err_set(e, ERR_DENIED, "the spawner does not give warrants on this socket");
	frame_fds_close(fds, n);
	return frame_check(f, len, n, FRAME_FROM_SPAWNER, 0, e) &&
	       (f->type == FRAME_WARRANT || err_set(e, ERR_INTERNAL, "the spawner sent an answer of another type"));
}

bool warrant_client_request(const struct warrant_query *q, unsigned char ret[WARRANT_LEN],
	struct err *e)
{
	AUTO_FD fd = -1;
	AUTO_FD subject = -1;
	struct frame f;

	if (!warrant_socket_connect(q->socket, &fd, e))
		return false;
	subject = io_memfd_sealed("jobsched-warrant", q->subject.data, q->subject.len);
	if (subject < 0)
		return err_errno(e, -subject, "could not make a memory file");
	frame_init(&f, FRAME_ASK_WARRANT, 0);
	f.ask_warrant.kind = q->subject.kind;
	f.ask_warrant.check = q->check != NULL;
	if (q->check)
		memcpy(f.ask_warrant.warrant, q->check, WARRANT_LEN);
	if (!warrant_exchange(fd, &f, subject, e))
		return false;
	if (!f.warrant.given)
		return err_set(e, ERR_DENIED, "%s", f.warrant.error);
	memcpy(ret, f.warrant.warrant, WARRANT_LEN);
	return true;
}
