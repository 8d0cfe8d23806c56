/* SPDX-License-Identifier: Apache-2.0 */
/* The jobsched-crontab program: accepts connections, one process per request. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"
#include "spool/request.h"
#include "spool/service.h"
#include "spool/table_file.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTEN_FD 3      /* of systemd */
#define CHILDREN_MAX 64
#define CHILDREN_OF_USER 4
#define REQUEST_SEC 20   /* a request that takes longer is given up */
#define STALE_SEC 3600   /* temporary files of killed processes are removed after this time */
#define IDLE_MS 60000    /* without a request for this time the program ends; systemd holds the socket */

struct options {
	const char *socket, *spool, *etc;
	bool stay;
};

static const struct options_row rows[] = {
	{"socket", "PATH", offsetof(struct options, socket),
		"create this socket; default: the one that systemd passes"},
	{"spool", "DIR", offsetof(struct options, spool),
		"directory of the tables; default: " CRONTAB_SPOOL},
	{"etc", "DIR", offsetof(struct options, etc),
		"directory of cron.allow, cron.deny, at.allow and at.deny; default: /etc"},
	{"stay", NULL, offsetof(struct options, stay), "do not end after a minute without a request"},
};
static const struct options_program program = {
	.name = "jobsched-crontab",
	.usage = "usage: jobsched-crontab [OPTION…]\n"
		 "Reads and writes the crontabs of users for crontab(1), as root. See jobsched-crontab(8).\n",
	.rows = rows,
	.n = ELEMENTS(rows),
};

/* ---- the socket ---- */

static int socket_of_systemd(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	AUTO_TEXT own = xprintf("%d", (int)getpid());

	return text_equal(pid, own) && text_equal(n, "1") ? LISTEN_FD : -EINVAL;
}

static int socket_create(const char *path)
{
	AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
		chmod(path, 0666) < 0 || listen(fd, CHILDREN_MAX) < 0)
		return -errno;
	return STEAL_FD(fd);
}

/* ---- one request ---- */

static void reply_send(int fd, const struct spool_reply *r)
{
	AUTO_DONE(buf) out = {};

	spool_reply_write(r, &out);
	(void)io_write_all(fd, out.data, out.len);
}

/* In a process of its own: the user database may block, and alarm() ends everything. */
static void request_serve(const struct spool_service *s, int fd, uid_t caller)
{
	AUTO_DONE(buf) request = {};
	AUTO_DONE(spool_reply) reply = {};
	int r;

	alarm(REQUEST_SEC);
	r = io_read_all(fd, &request, SPOOL_REQUEST_MAX);
	if (r < 0)
		reply.status = SPOOL_INVALID;
	else
		spool_service_answer(s, caller, request.data ? request.data : "", request.len, &reply);
	reply_send(fd, &reply);
}

/* ---- the processes ---- */

struct server {
	struct spool_service service;
	int fd;
	bool stay;
	size_t n;
	struct {
		pid_t pid;
		uid_t uid;
	} children[CHILDREN_MAX];
};

static void children_reap(struct server *s)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (size_t i = 0; i < s->n; i++)
			if (s->children[i].pid == pid) {
				s->children[i] = s->children[--s->n];
				break;
			}
}

/* One user cannot take the places of others. */
static bool has_place(const struct server *s, uid_t uid)
{
	size_t own = 0;

	for (size_t i = 0; i < s->n; i++)
		own += s->children[i].uid == uid;
	return s->n < CHILDREN_MAX && own < CHILDREN_OF_USER;
}

static void child_start(struct server *s, int fd, uid_t uid)
{
	pid_t pid = fork();

	if (pid < 0) {
		log_warning("cannot start a process: %s", strerror(errno));
		reply_send(fd, &(struct spool_reply){.status = SPOOL_BUSY});
		return;
	}
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		close(s->fd);
		request_serve(&s->service, fd, uid);
		_exit(EXIT_SUCCESS);
	}
	s->children[s->n].pid = pid;
	s->children[s->n++].uid = uid;
}

static void connection_accept(struct server *s)
{
	AUTO_FD fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	if (has_place(s, peer.uid))
		child_start(s, fd, peer.uid);
	else /* the reply fits into the buffer of a new socket, so this does not block */
		reply_send(fd, &(struct spool_reply){.status = SPOOL_BUSY});
}

static void on_child(int sig)
{
	(void)sig;
}

static void spool_clean(const char *path)
{
	AUTO_FD dir = table_file_open_dir(path, geteuid());

	if (dir >= 0)
		table_file_clean(dir, (time_t)(clock_now(&clock_system) / USEC_SEC) - STALE_SEC);
}

static int server_run(struct server *s)
{
	struct sigaction act = {.sa_handler = on_child};
	sigset_t block, open;

	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_BLOCK, &block, &open);
	sigaction(SIGCHLD, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		struct pollfd p = {.fd = s->fd, .events = POLLIN};
		struct timespec idle = {.tv_sec = IDLE_MS / 1000};
		/* SIGCHLD is delivered only here */
		int r = ppoll(&p, 1, s->stay ? NULL : &idle, &open);

		if (r < 0 && errno != EINTR)
			return EXIT_FAILURE;
		children_reap(s);
		if (r > 0)
			connection_accept(s);
		else if (r == 0 && s->n == 0)
			return EXIT_SUCCESS;
	}
}

int main(int argc, char **argv)
{
	struct options o = {.etc = "/etc"};
	struct server s = {.service = SPOOL_SERVICE_DEFAULT};
	int r = options_parse(&program, argc, argv, &o);
	AUTO_TEXT cron_allow = xprintf("%s/cron.allow", o.etc);
	AUTO_TEXT cron_deny = xprintf("%s/cron.deny", o.etc);
	AUTO_TEXT at_allow = xprintf("%s/at.allow", o.etc);
	AUTO_TEXT at_deny = xprintf("%s/at.deny", o.etc);

	if (r != OPTIONS_GO_ON)
		return r;
	log_open("jobsched-crontab", LOG_LEVEL_INFO, NULL);
	s.service.cron.allow = cron_allow;
	s.service.cron.deny = cron_deny;
	s.service.at.allow = at_allow;
	s.service.at.deny = at_deny;
	if (o.spool)
		s.service.dir = o.spool;
	s.stay = o.stay;
	s.fd = o.socket ? socket_create(o.socket) : socket_of_systemd();
	if (s.fd < 0) {
		fprintf(stderr, o.socket ? "jobsched-crontab: cannot create the socket '%s': %s\n"
			: "jobsched-crontab: no socket from systemd; start it with "
			  "'systemctl start jobsched-crontab.socket', or give --socket\n",
			o.socket, strerror(-s.fd));
		return EXIT_FAILURE;
	}
	spool_clean(s.service.dir);
	return server_run(&s);
}
