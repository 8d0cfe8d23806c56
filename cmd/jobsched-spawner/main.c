/* SPDX-License-Identifier: Apache-2.0 */
/* jobsched-spawner: options, the lock, what an earlier life left, the socket; then the loop. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/manager.h"
#include "exec/procfs.h"
#include "exec/reexec.h"
#include "exec/spawner.h"
#include "exec/state.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define EXIT_UNAVAILABLE 69 /* another one serves this directory */

struct options {
	const char *runtime_dir, *output_dir;
	usec_t linger;
	bool background;
	int resume;         /* a state to go on with; -1: none */
	char *const *argv;
};

static const char usage_text[] =
	"usage: jobsched-spawner --runtime-dir DIR --output-dir DIR [OPTION…]\n"
	"Starts workers for jobschedd and reports how they end. Started by jobschedd in user mode.\n"
	"\n"
	"  --runtime-dir DIR   where its socket, lock and id are\n"
	"  --output-dir DIR    where the output of jobs is kept\n"
	"  --linger SECONDS    leave after that long without engine, worker and unreported end (60; 0: never)\n"
	"  --background        return when it listens; messages go to DIR/spawner.log\n"
	"  --can-read-state N  say by the exit status whether this program could go on where one has left off\n"
	"                      that writes version N of its state (SIGHUP makes it do so)\n"
	"  --help, --version\n";

enum { OPT_RUNTIME = 256, OPT_OUTPUT, OPT_LINGER, OPT_BACKGROUND, OPT_CAN_READ, OPT_RESUME, OPT_HELP, OPT_VERSION };

/* -1: go on; else the exit code. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{"runtime-dir", required_argument, NULL, OPT_RUNTIME},
		{"output-dir", required_argument, NULL, OPT_OUTPUT},
		{"linger", required_argument, NULL, OPT_LINGER},
		{"background", no_argument, NULL, OPT_BACKGROUND},
		{"can-read-state", required_argument, NULL, OPT_CAN_READ},
		{"resume", required_argument, NULL, OPT_RESUME}, /* by the program itself only */
		{"help", no_argument, NULL, OPT_HELP},
		{"version", no_argument, NULL, OPT_VERSION},
		{},
	};
	int64_t seconds, number;

	for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
		switch (c) {
		case OPT_RUNTIME:
			o->runtime_dir = optarg;
			break;
		case OPT_OUTPUT:
			o->output_dir = optarg;
			break;
		case OPT_LINGER:
			if (!parse_int(optarg, 0, 366 * 86400, &seconds)) {
				fprintf(stderr, "jobsched-spawner: '%s' is not a number of seconds\n", optarg);
				return EXIT_USAGE;
			}
			o->linger = seconds * USEC_SEC;
			break;
		case OPT_BACKGROUND:
			o->background = true;
			break;
		case OPT_CAN_READ:
			return parse_int(optarg, STATE_VERSION_OLDEST, STATE_VERSION, &number) ? 0 : EXIT_FAILURE;
		case OPT_RESUME:
			if (!parse_int(optarg, 3, INT32_MAX, &number))
				return EXIT_USAGE;
			o->resume = (int)number;
			break;
		case OPT_HELP:
			fputs(usage_text, stdout);
			return 0;
		case OPT_VERSION:
			puts("jobsched-spawner " PACKAGE_VERSION);
			return 0;
		default:
			fputs("try 'jobsched-spawner --help'\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc && o->runtime_dir && o->output_dir)
		return -1;
	fputs(usage_text, stderr);
	return EXIT_USAGE;
}

/* Signals come through a descriptor; 0, 1 and 2 exist; nothing inherited stays open but what a state names. */
static void settle(bool resume)
{
	static const char preset[64]; /* the kernel's struct sigaction, all zero: SIG_DFL */
	sigset_t all;
	int fd;

	for (int s = 1; s < NSIG; s++) /* libc keeps two of them to itself and would not touch these */
		syscall(SYS_rt_sigaction, s, preset, NULL, (NSIG - 1) / 8);
	signal(SIGPIPE, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 3);
	if (resume)
		close(fd);
	else
		close_range(3, ~0U, 0);
	umask(027); /* the group may read the output of jobs */
}

/* The log of a spawner that nobody watches; begun anew when it has grown. */
static int log_file(const char *dir)
{
	AUTO_TEXT path = xprintf("%s/spawner.log", dir);
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > (1 << 20) && ftruncate(fd, 0) < 0)
		return -1;
	return STEAL_FD(fd);
}

/*
 * The caller's process waits for the word that we listen and exits with it; we go on in a session of our own.
 * Returns the descriptor for that word.
 */
static int go_background(const char *dir)
{
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	AUTO_FD log = log_file(dir);
	unsigned char word = EXIT_FAILURE;
	int pipe[2];
	pid_t pid;

	if (null < 0 || pipe2(pipe, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return -errno;
	if (pid > 0) {
		close(pipe[1]);
		_exit(read(pipe[0], &word, 1) == 1 ? word : EXIT_FAILURE);
	}
	close(pipe[0]);
	setsid();
	dup2(null, 0);
	dup2(null, 1);
	dup2(log >= 0 ? log : null, 2);
	return pipe[1];
}

static bool listen_at(const char *dir, int *ret, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/spawner.sock", dir);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(e, ERR_INVALID, "the socket path '%s' is longer than %zu bytes: choose a shorter "
					       "--runtime-dir", path, sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, strlen(path));
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(e, errno, "could not remove the old socket '%s'", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0)
		return err_errno(e, errno, "could not listen at '%s'", path);
	*ret = STEAL_FD(fd);
	return true;
}

/* Ends what a spawner that died left behind, then takes its place under a new name. */
static bool succeed(const char *dir, char id[RANDOM_ID_LEN + 1], struct err *e)
{
	AUTO_TEXT path = xprintf("%s/spawner.id", dir);
	AUTO_DONE(buf) old = {};
	int r = io_read_file(path, &old, 4096);

	if (r < 0 && r != -ENOENT)
		return err_errno(e, -r, "could not read '%s'", path);
	if (r == 0)
		old.data[strcspn(old.data, "\n")] = '\0';
	if (r == 0 && old.data[0]) {
		int n = procfs_sweep(old.data);

		if (n > 0)
			log_warning("ended %d processes that an earlier spawner had left", n);
		else if (n < 0)
			log_error("some processes of an earlier spawner could not be ended; going on");
	}
	io_random_id(id);
	buf_clear(&old);
	buf_printf(&old, "%s\n", id);
	r = io_write_file(path, old.data, old.len, 0600);
	return r < 0 ? err_errno(e, -r, "could not write '%s'", path) : true;
}

static bool open_places(const struct options *o, int *ret_lock, int *ret_output, struct err *e)
{
	AUTO_TEXT lock = xprintf("%s/spawner.lock", o->runtime_dir);
	int r = io_mkdirs(o->runtime_dir, 0700);

	if (r < 0)
		return err_errno(e, -r, "could not make directory '%s'", o->runtime_dir);
	r = io_mkdirs(o->output_dir, 0750);
	if (r < 0)
		return err_errno(e, -r, "could not make directory '%s'", o->output_dir);
	*ret_output = open(o->output_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_output < 0)
		return err_errno(e, errno, "could not open directory '%s'", o->output_dir);
	*ret_lock = io_lock_file(lock);
	if (*ret_lock == -EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT, "another spawner serves '%s'", o->runtime_dir);
	return *ret_lock < 0 ? err_errno(e, -*ret_lock, "could not lock '%s'", lock) : true;
}

static void say_ready(int *fd, int code)
{
	unsigned char word = (unsigned char)code;

	if (*fd >= 0)
		(void)io_write_all(*fd, &word, 1);
	auto_fd_close(fd);
	*fd = -1;
}

/* Serves until it is time to leave. */
static int live(const struct options *o, struct spawner_options *so)
{
	__attribute__((cleanup(reexec_done))) struct reexec program = {};
	AUTO_TEXT path = xprintf("%s/spawner.sock", o->runtime_dir);
	struct err e = {};
	bool ok;

	so->linger = o->linger;
	so->program = &program;
	ok = reexec_init(&program, o->argv, &e) && spawner_run(so, &e);
	unlink(path);
	if (!ok)
		log_error("%s", e.msg);
	else
		log_info("spawner %s leaves", so->id);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int serve(const struct options *o, int *ready)
{
	AUTO_FD lock = -1;
	AUTO_FD output = -1;
	AUTO_FD sock = -1;
	char id[RANDOM_ID_LEN + 1];
	struct err e = {};

	if (!open_places(o, &lock, &output, &e)) {
		log_error("%s", e.msg);
		return e.kind == ERR_CONFLICT ? EXIT_UNAVAILABLE : EXIT_FAILURE;
	}
	if (!succeed(o->runtime_dir, id, &e) || !listen_at(o->runtime_dir, &sock, &e)) {
		log_error("%s", e.msg);
		return EXIT_FAILURE;
	}
	log_info("spawner %s listens at '%s/spawner.sock'", id, o->runtime_dir);
	manager_tell("READY=1");
	say_ready(ready, 0);
	return live(o, &(struct spawner_options){.listen = sock, .output_dir = output, .lock = lock, .id = id});
}

/* The process was a spawner before it became this program, and goes on as the same one. */
static int serve_on(const struct options *o)
{
	struct state *state = NULL;
	const struct state_head *h;
	struct err e = {};
	int code;

	prctl(PR_SET_NAME, "jobsched-spawner"); /* it was run by a descriptor */
	if (!state_open(o->resume, &state, &e)) {
		log_error("could not go on with what was here: %s", e.msg);
		return EXIT_FAILURE;
	}
	h = state_head(state);
	manager_tell("READY=1");
	code = live(o, &(struct spawner_options){.listen = h->listen, .output_dir = h->output_dir, .lock = h->lock,
				.id = h->id, .resume = state});
	state_free(state);
	return code;
}

int main(int argc, char **argv)
{
	struct options o = {.linger = 60 * USEC_SEC, .resume = -1, .argv = argv};
	int code = parse_options(argc, argv, &o);
	int ready = -1;

	if (code >= 0)
		return code;
	settle(o.resume >= 0);
	log_open("jobsched-spawner", LOG_LEVEL_INFO, NULL);
	if (o.resume >= 0)
		return serve_on(&o);
	if (o.background && (io_mkdirs(o.runtime_dir, 0700) < 0 || (ready = go_background(o.runtime_dir)) < 0)) {
		log_error("could not go to the background in '%s'", o.runtime_dir);
		return EXIT_FAILURE;
	}
	code = serve(&o, &ready);
	say_ready(&ready, code);
	return code;
}
