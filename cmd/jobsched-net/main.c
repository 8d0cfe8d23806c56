/* SPDX-License-Identifier: Apache-2.0 */
/* The jobsched-net program. */
#include "base/auto.h"
#include "base/detach.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/options.h"
#include "base/text.h"
#include "net/child.h"
#include "net/net_server.h"
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#define EXIT_UNAVAILABLE 69 /* another process serves this directory */
#define EXIT_CONFIG 78

struct options {
	const char *runtime_dir, *state_dir, *client, *linger, *log_format;
	bool system, background;
};

static const struct options_row rows[] = {
	{"runtime-dir", "DIR", offsetof(struct options, runtime_dir),
		"directory of the socket net.sock"},
	{"state-dir", "DIR", offsetof(struct options, state_dir),
		"directory of the artifact cache"},
	{"system", NULL, offsetof(struct options, system), "serve the system daemon; not as root"},
	{"client-user", "NAME", offsetof(struct options, client),
		"user of the daemon with --system; default: jobsched"},
	{"linger", "SECONDS", offsetof(struct options, linger),
		"exit after this time without a daemon; 0: never; default: 60"},
	{"background", NULL, offsetof(struct options, background),
		"return when the socket is ready; log to DIR/net.log"},
	{"log-format", "FORMAT", offsetof(struct options, log_format),
		"text, or json for one object per line; default: text"},
};
static const struct options_program program = {
	.name = "jobsched-net",
	.usage = "usage: jobsched-net --runtime-dir DIR --state-dir DIR [OPTION…]\n"
		 "Sends requests and fetches artifacts for jobschedd. See jobsched-net(8).\n",
	.rows = rows,
	.n = ELEMENTS(rows),
};

/* OPTIONS_GO_ON, or the exit status. */
static int net_options_parse(int argc, char **argv, struct options *o)
{
	int r = options_parse(&program, argc, argv, o);

	if (r != OPTIONS_GO_ON || (o->runtime_dir && o->state_dir))
		return r;
	fputs("jobsched-net: --runtime-dir and --state-dir are needed; try 'jobsched-net --help'\n", stderr);
	return OPTIONS_EXIT_USAGE;
}

/* ---- the socket ---- */

static bool socket_listen(const struct options *o, int *ret, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/net.sock", o->runtime_dir);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/*
	 * In system mode the daemon runs as another user. Clients are checked by SO_PEERCRED, so
	 * the mode can be open.
	 */
	mode_t mask = umask(o->system ? 0111 : 0177);
	int r;

	if (strlen(path) >= sizeof(a.sun_path)) {
		umask(mask);
		return err_set(e, ERR_INVALID,
			"the socket path '%s' is longer than %zu bytes: choose a shorter --runtime-dir",
			path, sizeof(a.sun_path) - 1);
	}
	memcpy(a.sun_path, path, strlen(path));
	unlink(path);
	r = fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0 ? errno
											   : 0;
	umask(mask);
	if (r)
		return err_errno(e, r, "could not listen at '%s'", path);
	*ret = STEAL_FD(fd);
	return true;
}

/*
 * The kernel releases the lock when the process exits, so a stale socket file is not mistaken for a
 * running process.
 */
static bool lock_take(const struct options *o, int *ret, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/net.lock", o->runtime_dir);
	int r = io_mkdirs(o->runtime_dir, o->system ? 0755 : 0700);

	if (r >= 0)
		r = *ret = io_lock_file(path);
	if (r == -EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT, "another jobsched-net serves '%s'", o->runtime_dir);
	return r >= 0 || err_errno(e, -r, "could not lock '%s'", path);
}

static bool client_uid(const struct options *o, uid_t *ret, struct err *e)
{
	const char *name = o->client ? o->client : "jobsched";
	const struct passwd *pw;

	*ret = geteuid();
	if (!o->system)
		return true;
	if (geteuid() == 0)
		return err_set(e, ERR_REFUSED,
			"jobsched-net does not run as root; run it as user jobsched-net "
			"(systemctl start jobsched-net)");
	pw = getpwnam(name);
	if (!pw)
		return err_set(e, ERR_NOT_FOUND, "there is no user '%s' (--client-user)", name);
	*ret = pw->pw_uid;
	return true;
}

/* ---- the process ---- */

static int net_background(const char *dir)
{
	AUTO_TEXT path = xprintf("%s/net.log", dir);
	AUTO_FD log = -1;

	if (io_mkdirs(dir, 0700) < 0)
		return -1;
	log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return detach_start(log);
}

static bool watch_signals(sd_event *ev, struct err *e)
{
	static const int ends[] = {SIGTERM, SIGINT};
	int r = 0;

	/* without a handler, a signal ends the loop */
	for (size_t i = 0; r >= 0 && i < ELEMENTS(ends); i++)
		r = sd_event_add_signal(ev, NULL, ends[i] | SD_EVENT_SIGNAL_PROCMASK, NULL, NULL);
	return r >= 0 || err_errno(e, -r, "could not watch signals");
}

static int net_serve(const struct options *o, int64_t linger, int *ready)
{
	__attribute__((cleanup(sd_event_unrefp))) sd_event *ev = NULL;
	AUTO(net_server) *server = NULL;
	AUTO_TEXT path = xprintf("%s/net.sock", o->runtime_dir);
	AUTO_FD lock = -1;
	AUTO_FD sock = -1;
	struct err e = {};
	uid_t client = 0;
	int r;

	if (!failpoints_open(&e) || !client_uid(o, &client, &e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	if (!lock_take(o, &lock, &e)) {
		log_error("%s", e.msg);
		return e.kind == ERR_CONFLICT ? EXIT_UNAVAILABLE : EXIT_FAILURE;
	}
	r = sd_event_new(&ev);
	if (r < 0)
		err_errno(&e, -r, "could not create an event loop");
	else if (watch_signals(ev, &e) && socket_listen(o, &sock, &e))
		net_server_new(ev,
			&(struct net_server_options){.listen = sock,
				.state_dir = o->state_dir,
				.private_copies = !o->system,
				.client = client,
				.linger = linger * USEC_SEC},
			&server, &e);
	if (!server) {
		log_error("%s", e.msg);
		return EXIT_FAILURE;
	}
	log_info("listening at '%s'", path);
	sd_notify(0, "READY=1");
	detach_report(ready, EXIT_SUCCESS);
	r = sd_event_loop(ev);
	unlink(path);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct options o = {.linger = "60", .log_format = "text"};
	enum log_format format;
	int64_t linger = 0;
	int code, ready = -1;

	if (argc == 2 && strcmp(argv[1], "--child") == 0) /* a child of this program */
		return child_main();
	code = net_options_parse(argc, argv, &o);
	if (code != OPTIONS_GO_ON)
		return code;
	if (!text_parse_int(o.linger, 0, 366 * 86400, &linger)) {
		fprintf(stderr, "jobsched-net: '%s' is not a number of seconds\n", o.linger);
		return OPTIONS_EXIT_USAGE;
	}
	if (!log_format_parse(o.log_format, &format)) {
		fprintf(stderr, "jobsched-net: --log-format: '%s' is not text or json\n", o.log_format);
		return OPTIONS_EXIT_USAGE;
	}
	log_set_format(format);
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_CORE, &(struct rlimit){}); /* requests may contain tokens */
	umask(077);
	log_open("jobsched-net", LOG_LEVEL_INFO, NULL);
	if (o.background && (ready = net_background(o.runtime_dir)) < 0) {
		log_error("could not go to the background in '%s'", o.runtime_dir);
		return EXIT_FAILURE;
	}
	code = net_serve(&o, linger, &ready);
	detach_report(&ready, code);
	return code;
}
