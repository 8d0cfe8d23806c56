/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl web': opens the page of the daemon on loopback. */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/verbs.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool listen_loopback(int64_t port, int *ret, int *ret_port, struct err *e)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	const int on = 1;
	AUTO_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 128) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return err_errno(e, errno, "cannot listen on 127.0.0.1:%lld; choose another --port",
			(long long)port);
	*ret_port = ntohs(a.sin_port);
	*ret = STEAL_FD(fd);
	return true;
}

/* ---- the daemon takes over the socket ---- */

static bool connect_path(const char *path, int *ret, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return err_set(e, ERR_UNREACHABLE, "cannot connect to '%s': %s", path,
			strerror(errno));
	*ret = STEAL_FD(fd);
	return true;
}

/* Reads up to 'end'. What follows it was not sent yet, because the daemon waits for the client. */
static bool read_until(int fd, const char *end, char *out, size_t size, struct err *e)
{
	size_t n = 0;

	while (n + 1 < size) {
		ssize_t got = read(fd, out + n, 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_set(e, ERR_UNREACHABLE, "the daemon closed the connection");
		out[++n] = '\0';
		if (n >= strlen(end) && strcmp(out + n - strlen(end), end) == 0)
			return true;
	}
	return err_set(e, ERR_INTERNAL, "the answer of the daemon is too long");
}

static bool send_descriptor(int sock, int fd, struct err *e)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec io = {(void *)"L", 1};
	struct msghdr m = {.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == 1 ||
	       err_errno(e, errno, "cannot pass the socket to the daemon");
}

static bool pass_listener(const char *path, int listener, int *ret, struct err *e)
{
	static const char request[] = "POST /v1/web HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
				      "Upgrade: jobsched-listener\r\nContent-Length: 0\r\n\r\n";
	char answer[4096] = "";
	int fd = -1;

	if (!connect_path(path, &fd, e))
		return false;
	AUTO_FD sock = fd;
	if (io_write_all(sock, request, strlen(request)) < 0)
		return err_set(e, ERR_UNREACHABLE, "the daemon closed the connection");
	if (!read_until(sock, "\r\n\r\n", answer, sizeof(answer), e))
		return false;
	if (!text_starts(answer, "HTTP/1.1 101"))
		return err_set(e, ERR_LIMIT, "the daemon does not serve the page: %.*s; end another "
			"'jobctl web', or upgrade the daemon", (int)strcspn(answer, "\r"), answer);
	if (!send_descriptor(sock, listener, e) || !read_until(sock, "\n", answer, sizeof(answer), e))
		return false;
	if (strcmp(answer, "ok\n") != 0)
		return err_set(e, ERR_DENIED, "the daemon refused the socket: %.*s",
			(int)strcspn(answer, "\n"), answer);
	*ret = STEAL_FD(sock);
	return true;
}

/* ---- the browser ---- */

/* Starts xdg-open in the background. Without a display or the program, the URL is only printed. */
static void open_browser(const char *url)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	pid_t child;

	if (!(x && *x) && !(wayland && *wayland))
		return;
	child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (null >= 0) {
			dup2(null, STDIN_FILENO);
			dup2(null, STDOUT_FILENO);
			dup2(null, STDERR_FILENO);
		}
		execlp("xdg-open", "xdg-open", url, (char *)NULL);
		_exit(127);
	}
}

static bool read_port(const struct args *a, int64_t *ret, struct err *e)
{
	const char *text = args_last(a, "port");

	*ret = 0;
	return !text || text_parse_int(text, 1, 65535, ret) ||
	       err_set(e, ERR_INVALID, "--port: '%s' is not a number from 1 to 65535", text);
}

static bool get_token(struct ctl *c, const char *role, json_t **ret, struct err *e)
{
	json_auto_t *body = json_pack("{s:s}", "role", role);

	return api_call(c, "POST", "/v1/tokens/once", body, ret, e);
}

int verb_web(struct ctl *c, const struct args *a)
{
	const char *role = args_last(a, "role") ? args_last(a, "role") : "viewer";
	json_auto_t *answer = NULL;
	AUTO_TEXT url = NULL;
	struct err e = {};
	int fd = -1, link = -1, number = 0;
	struct pollfd p = {.events = POLLIN};
	int64_t port;

	if (!read_port(a, &port, &e) || !connect_daemon(c, &e))
		return ctl_fail(&e);
	if (c->remote) {
		err_set(&e, ERR_INVALID, "'web' needs the Unix socket of a daemon on this machine; open "
			"the URL of a remote daemon in the browser");
		return ctl_fail(&e);
	}
	if (!listen_loopback(port, &fd, &number, &e))
		return ctl_fail(&e);
	AUTO_FD listener = fd;
	if (!pass_listener(c->socket, listener, &link, &e))
		return ctl_fail(&e);
	AUTO_FD sock = link;
	if (!get_token(c, role, &answer, &e))
		return ctl_fail(&e);
	close(STEAL_FD(listener)); /* the daemon has it */
	url = xprintf("http://127.0.0.1:%d/#token=%s", number, member_text(answer, "token"));
	printf("%s\n", url);
	fflush(stdout);
	ctl_say("the page is served until this command ends (Ctrl-C); the URL is valid once, for five minutes");
	if (!args_has(a, "no-browser"))
		open_browser(url);
	p.fd = sock;
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	err_set(&e, ERR_UNREACHABLE, "the daemon has stopped; run 'jobctl web' again");
	return ctl_fail(&e);
}
