/* SPDX-License-Identifier: Apache-2.0 */
/* The client side of jobsched-crontab, used by crontab(1) and at(1). */
#include "spool/client.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/file/paths.h"
#include "base/text.h"
#include "spool/request.h"
#include "spool/service.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define START "start it with 'systemctl start jobsched-crontab.socket'"
#define TIMEOUT_SEC 30

static int open_socket(const char *path, struct err *e)
{
	AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = TIMEOUT_SEC};

	if (strlen(path) >= sizeof(a.sun_path)) {
		err_set(e, ERR_INVALID, "the socket path '%s' is too long", path);
		return -1;
	}
	strcpy(a.sun_path, path);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
		connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0) {
		err_set(e, ERR_UNREACHABLE, "the service jobsched-crontab does not answer at '%s' (%s); " START,
			path, strerror(errno));
		return -1;
	}
	return STEAL_FD(fd);
}

/*
 * A service that refuses a request replies before it has read all of it. Then sending fails, and
 * the reply says why.
 */
static bool exchange(int fd, const struct buf *request, struct spool_reply *ret, struct err *e)
{
	AUTO_DONE(buf) answer = {};
	int sent, got;

	signal(SIGPIPE, SIG_IGN);
	sent = io_write_all(fd, request->data, request->len);
	shutdown(fd, SHUT_WR);
	got = io_read_all(fd, &answer, SPOOL_REPLY_MAX);
	if (answer.len && spool_reply_read(answer.data, answer.len, ret))
		return true;
	if (sent < 0 || got < 0)
		return err_errno(e, sent < 0 ? -sent : -got, "lost the connection to jobsched-crontab");
	return err_set(e, ERR_UNREACHABLE,
		"jobsched-crontab gave no answer; 'journalctl -u jobsched-crontab' shows its messages");
}

static bool call_service(const char *path, const struct spool_request *r, struct spool_reply *ret,
	struct err *e)
{
	AUTO_DONE(buf) request = {};
	AUTO_FD fd = open_socket(path, e);

	if (fd < 0)
		return false;
	spool_request_write(r, &request);
	return exchange(fd, &request, ret, e);
}

bool spool_client_call(const struct spool_request *r, struct spool_reply *ret, struct err *e)
{
	static const struct spool_service service = SPOOL_SERVICE_DEFAULT;
	const char *given = getenv("JOBSCHED_CRONTAB_SOCKET");
	AUTO_DONE(buf) request = {};
	AUTO_DONE(paths) paths = {};
	AUTO_TEXT path = NULL;

	if (given && *given)
		return call_service(given, r, ret, e);
	if (geteuid() == 0) {
		spool_request_write(r, &request);
		spool_service_answer(&service, getuid(), request.data, request.len, ret);
		return true;
	}
	if (!paths_find(&(struct paths_options){}, &paths, e))
		return false;
	path = xprintf("%s/" SPOOL_SOCKET, paths.runtime_dir);
	return call_service(path, r, ret, e);
}
