/* SPDX-License-Identifier: Apache-2.0 */
/* jobsched-spawner: options, the lock, what an earlier life left, the socket; then the loop. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "exec/account.h"
#include "exec/cgroup.h"
#include "exec/lookup.h"
#include "exec/manager.h"
#include "exec/procfs.h"
#include "exec/reexec.h"
#include "exec/secrets.h"
#include "exec/spawner.h"
#include "exec/spawner_conf.h"
#include "exec/state.h"
#include "exec/user.h"
#include "exec/warrant.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define CONFIG_DEFAULT JOBSCHED_SYSCONFDIR "/spawner.conf"
#define EXIT_CONFIG 78
#define SOCKET "spawner.sock"
#define SOCKET_FOR_ALL "warrant.sock" /* where owners approve their own jobs */
#define EXIT_UNAVAILABLE 69 /* another one serves this directory */

struct options {
	const char *runtime_dir, *output_dir, *state_dir, *config, *cgroup;
	usec_t linger;
	bool background, system;
	int resume;         /* a state to go on with; -1: none */
	char *const *argv;
};

/* Of the system's spawner. */
struct authority {
	struct spawner_conf conf;
	struct user engine;
	struct warrant_key key;
};

static const char usage_text[] =
	"usage: jobsched-spawner --runtime-dir DIR --output-dir DIR [OPTION…]\n"
	"Starts workers for jobschedd and reports how they end. Started by jobschedd in user mode.\n"
	"\n"
	"  --runtime-dir DIR   where its socket is\n"
	"  --output-dir DIR    where the output of jobs is kept\n"
	"  --state-dir DIR     where its lock and id are (the runtime directory)\n"
	"  --system            as root: every worker becomes the owner of its job\n"
	"  --config FILE       what the system's spawner may do (" CONFIG_DEFAULT ")\n"
	"  --cgroup PLACE      where runs have their control groups: a directory, 'none', or 'auto' (auto)\n"
	"  --linger SECONDS    leave after that long without engine, worker and unreported end (60; 0: never)\n"
	"  --background        return when it listens; messages go to DIR/spawner.log\n"
	"  --can-read-state N  say by the exit status whether this program could go on where one has left off\n"
	"                      that writes version N of its state (SIGHUP makes it do so)\n"
	"  --help, --version\n";

enum { OPT_RUNTIME = 256, OPT_OUTPUT, OPT_STATE, OPT_SYSTEM, OPT_CONFIG, OPT_CGROUP, OPT_LINGER, OPT_BACKGROUND, OPT_CAN_READ,
	OPT_RESUME, OPT_LOOKUP, OPT_LOOKUP_ACCOUNT, OPT_READ_SECRETS, OPT_HELP, OPT_VERSION };

static void authority_done(struct authority *a)
{
	spawner_conf_done(&a->conf);
}

/* What root says of us, and who the engine is. */
static bool take_authority(const struct options *o, struct authority *ret, struct err *e)
{
	const char *path = o->config ? o->config : CONFIG_DEFAULT;

	if (geteuid() != 0)
		return err_set(e, ERR_DENIED, "--system is for root; without it a spawner serves one user");
	spawner_conf_init(&ret->conf);
	if (!spawner_conf_read(&ret->conf, path, e))
		return false;
	if (ret->conf.pam != PAM_POLICY_OFF && !account_available())
		return err_set(e, ERR_REFUSED, "'%s' asks for PAM, and this program was built without it", path);
	return lookup_wait(&(struct lookup){.whom = ret->conf.engine_user}, &ret->engine, e) ||
	       err_wrap(e, "who is the engine ('engine-user' in '%s')", path);
}

/* Asked by an older program before it becomes this one, with all of its options. */
static bool can_take_over(const struct options *o, const char *version)
{
	AUTO_DONE(authority) who = {};
	struct err e = {};
	int64_t number;

	if (!parse_int(version, STATE_VERSION_OLDEST, STATE_VERSION, &number))
		return false;
	if (!o->system || take_authority(o, &who, &e))
		return true;
	fprintf(stderr, "jobsched-spawner: %s\n", e.msg);
	return false;
}

/* -1: go on; else the exit code. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{"runtime-dir", required_argument, NULL, OPT_RUNTIME},
		{"output-dir", required_argument, NULL, OPT_OUTPUT},
		{"state-dir", required_argument, NULL, OPT_STATE},
		{"system", no_argument, NULL, OPT_SYSTEM},
		{"config", required_argument, NULL, OPT_CONFIG},
		{"cgroup", required_argument, NULL, OPT_CGROUP},
		{"linger", required_argument, NULL, OPT_LINGER},
		{"background", no_argument, NULL, OPT_BACKGROUND},
		{"can-read-state", required_argument, NULL, OPT_CAN_READ},
		{"resume", required_argument, NULL, OPT_RESUME}, /* by the program itself only */
		{"lookup", required_argument, NULL, OPT_LOOKUP}, /* these three, too */
		{"lookup-account", required_argument, NULL, OPT_LOOKUP_ACCOUNT},
		{"read-secrets", no_argument, NULL, OPT_READ_SECRETS},
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
		case OPT_STATE:
			o->state_dir = optarg;
			break;
		case OPT_SYSTEM:
			o->system = true;
			break;
		case OPT_CONFIG:
			o->config = optarg;
			break;
		case OPT_CGROUP:
			o->cgroup = optarg;
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
			return can_take_over(o, optarg) ? 0 : EXIT_FAILURE;
		case OPT_RESUME:
			if (!parse_int(optarg, 3, INT32_MAX, &number))
				return EXIT_USAGE;
			o->resume = (int)number;
			break;
		case OPT_LOOKUP:
			return lookup_main(optarg, false);
		case OPT_LOOKUP_ACCOUNT:
			return lookup_main(optarg, true);
		case OPT_READ_SECRETS:
			return secrets_main();
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
	if (!o->state_dir)
		o->state_dir = o->runtime_dir;
	if (optind == argc && o->runtime_dir && o->output_dir && (o->system || !o->config))
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

/* The engine's group may connect, too; nothing is changed by name in a directory that is the engine's. */
static int bind_for(int fd, const struct sockaddr_un *a, const struct authority *who, mode_t mode)
{
	mode_t mask = umask(0777 & ~mode);
	int r = who && setegid(who->engine.gid) < 0 ? -1 : bind(fd, (const struct sockaddr *)a, sizeof(*a));
	int cause = errno;

	if (who && setegid(0) < 0)
		r = -1;
	umask(mask);
	errno = cause;
	return r;
}

static bool listen_at(const struct options *o, bool for_all, const struct authority *who, int *ret, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/%s", o->runtime_dir, for_all ? SOCKET_FOR_ALL : SOCKET);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(e, ERR_INVALID, "the socket path '%s' is longer than %zu bytes: choose a shorter "
					       "--runtime-dir", path, sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, strlen(path));
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(e, errno, "could not remove the old socket '%s'", path);
	if (fd < 0 || bind_for(fd, &a, who, for_all ? 0666 : who ? 0660 : 0700) < 0 || listen(fd, 16) < 0)
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

/* A directory of ours; of root's spawner, one that the engine's group may pass and nobody else. */
static bool open_dir(const char *path, mode_t mode, const struct authority *who, int *ret, struct err *e)
{
	struct stat st;
	int r = io_mkdirs(path, mode);

	if (r < 0)
		return err_errno(e, -r, "could not make directory '%s'", path);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (who ? O_NOFOLLOW : 0));
	if (*ret < 0 || fstat(*ret, &st) < 0)
		return err_errno(e, errno, "could not open directory '%s'", path);
	if (!who)
		return true;
	if (st.st_uid != 0 || st.st_mode & 022)
		return err_set(e, ERR_REFUSED, "the directory '%s' must belong to root and be writable by root only", path);
	if (fchown(*ret, 0, who->engine.gid) < 0 || fchmod(*ret, 02750) < 0)
		return err_errno(e, errno, "could not give directory '%s' to the group of '%s'", path, who->engine.name);
	return true;
}

/* Where workers find their artifact: each mounts its own over it. */
static char *artifact_place(const struct options *o)
{
	AUTO_TEXT path = o->system ? xprintf("%s/artifact", o->runtime_dir) : NULL;
	int r = path ? io_mkdirs(path, 0755) : 0;

	if (r < 0)
		log_warning("could not make directory '%s', jobs with artifacts will not start: %s", path, strerror(-r));
	return STEAL(path);
}

/* Of one that was killed a child may still have the lock, for as long as it takes to become a job. */
static int lock_patiently(const char *path)
{
	const struct timespec moment = {.tv_nsec = 50000000};
	int fd = io_lock_file(path);

	for (int i = 0; i < 20 && fd == -EWOULDBLOCK; i++) {
		nanosleep(&moment, NULL);
		fd = io_lock_file(path);
	}
	return fd;
}

static bool open_places(const struct options *o, const struct authority *who, int *ret_lock, int *ret_output,
	struct err *e)
{
	AUTO_TEXT lock = xprintf("%s/spawner.lock", o->state_dir);
	AUTO_FD state = -1;
	int r = io_mkdirs(o->runtime_dir, who ? 0755 : 0700);

	if (r < 0)
		return err_errno(e, -r, "could not make directory '%s'", o->runtime_dir);
	if (!open_dir(o->state_dir, who ? 0750 : 0700, who, &state, e) ||
		!open_dir(o->output_dir, 0750, who, ret_output, e))
		return false;
	*ret_lock = lock_patiently(lock);
	if (*ret_lock == -EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT, "another spawner serves '%s'", o->state_dir);
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

/* What root allows all runs of one owner together. */
static bool limit_owners(struct cgroups *g, const struct authority *who, struct err *e)
{
	const struct spawner_conf *c = who ? &who->conf : NULL;
	unsigned wanted, there = cgroups_on(g) ? g->controllers : 0;

	if (!c)
		return true;
	g->owner_limits = (struct cgroup_limits){.memory = c->owner_memory, .cpu = c->owner_cpu, .pids = c->owner_pids};
	wanted = (c->owner_memory ? CGROUP_MEMORY : 0U) | (c->owner_cpu ? CGROUP_CPU : 0U) | (c->owner_pids ? CGROUP_PIDS : 0U);
	if (!(wanted & ~there))
		return true;
	err_set(e, ERR_REFUSED, "spawner.conf limits owners, and there are no control groups here that do all of that; "
				"delegate them to the service (Delegate=yes), or set limit-missing = report");
	if (c->limit_missing == MISSING_REFUSE)
		return false;
	log_warning("%s", e->msg);
	return true;
}

/* Several spawners may share a place; the runtime directory is what tells them apart. */
static bool open_groups(const struct options *o, const struct authority *who, struct cgroups *ret, struct err *e)
{
	AUTO_TEXT real = realpath(o->runtime_dir, NULL);
	const char *of = real ? real : o->runtime_dir;
	unsigned char sum[SHA256_LEN];
	char name[SHA256_HEX];
	struct sha256 hash;

	sha256_init(&hash);
	sha256_add(&hash, of, strlen(of));
	sha256_end(&hash, sum);
	sha256_hex(sum, name)[12] = '\0';
	if (!cgroups_open(ret, o->cgroup, name, e))
		return false;
	if (cgroups_on(ret))
		log_info("runs have control groups in '%s'", ret->path);
	return limit_owners(ret, who, e);
}

/* What warrants are made with, and the socket for those who may approve only their own. */
static bool take_key(const struct options *o, struct authority *who, int *ret_asks, struct err *e)
{
	AUTO_FD state = open(o->state_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (state < 0)
		return err_errno(e, errno, "could not open directory '%s'", o->state_dir);
	return warrant_key_open(&who->key, state, e) &&
	       (who->conf.require_warrant != WARRANT_ALL || listen_at(o, true, who, ret_asks, e));
}

static void leave_nothing(const struct options *o)
{
	AUTO_TEXT path = xprintf("%s/" SOCKET_FOR_ALL, o->runtime_dir);

	unlink(path);
}

/* Serves until it is time to leave. */
static int live(const struct options *o, struct authority *who, struct spawner_options *so)
{
	AUTO_FD asks = -1;
	__attribute__((cleanup(reexec_done))) struct reexec program = {};
	AUTO_TEXT path = xprintf("%s/spawner.sock", o->runtime_dir);
	AUTO_TEXT artifacts = artifact_place(o);
	struct err e = {};
	bool ok;

	so->artifact_place = artifacts;
	so->linger = o->linger;
	so->program = &program;
	so->conf = who ? &who->conf : NULL;
	so->engine = who ? who->engine.uid : geteuid();
	if (who && !take_key(o, who, &asks, &e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	so->key = who ? &who->key : NULL;
	so->asks = asks;
	ok = reexec_init(&program, o->argv, &e) && spawner_run(so, &e);
	unlink(path);
	if (asks >= 0)
		leave_nothing(o);
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
	AUTO_DONE(authority) authority = {};
	AUTO_DONE(cgroups) groups = {.root = -1};
	struct authority *who = o->system ? &authority : NULL;
	char id[RANDOM_ID_LEN + 1];
	struct err e = {};

	if (who && !take_authority(o, who, &e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	if (!open_places(o, who, &lock, &output, &e)) {
		log_error("%s", e.msg);
		return e.kind == ERR_CONFLICT ? EXIT_UNAVAILABLE : EXIT_FAILURE;
	}
	if (!succeed(o->state_dir, id, &e) || !open_groups(o, who, &groups, &e) || !listen_at(o, false, who, &sock, &e)) {
		log_error("%s", e.msg);
		return EXIT_FAILURE;
	}
	log_info("spawner %s listens at '%s/spawner.sock'", id, o->runtime_dir);
	manager_tell("READY=1");
	say_ready(ready, 0);
	return live(o, who, &(struct spawner_options){.listen = sock, .output_dir = output, .lock = lock, .id = id,
			       .groups = &groups});
}

/* The process was a spawner before it became this program, and goes on as the same one. */
static int serve_on(const struct options *o)
{
	AUTO_DONE(cgroups) groups = {.root = -1};
	struct state *state = NULL;
	AUTO_DONE(authority) authority = {};
	struct authority *who = o->system ? &authority : NULL;
	const struct state_head *h;
	struct err e = {};
	int code;

	prctl(PR_SET_NAME, "jobsched-spawner"); /* it was run by a descriptor */
	if (!state_open(o->resume, &state, &e) || (who && !take_authority(o, who, &e))) {
		log_error("could not go on with what was here: %s", e.msg);
		return EXIT_FAILURE;
	}
	h = state_head(state);
	if (!cgroups_resume(&groups, h->groups, h->groups_next, &e) || !limit_owners(&groups, who, &e)) {
		log_error("%s", e.msg);
		state_free(state);
		return EXIT_FAILURE;
	}
	manager_tell("READY=1");
	code = live(o, who, &(struct spawner_options){.listen = h->listen, .output_dir = h->output_dir, .lock = h->lock,
				.id = h->id, .groups = &groups, .resume = state});
	state_free(state);
	return code;
}

int main(int argc, char **argv)
{
	struct options o = {.cgroup = "auto", .linger = 60 * USEC_SEC, .resume = -1, .argv = argv};
	int code = parse_options(argc, argv, &o);
	struct err e = {};
	int ready = -1;

	if (code >= 0)
		return code;
	settle(o.resume >= 0);
	log_open("jobsched-spawner", LOG_LEVEL_INFO, NULL);
	if (!failpoints_open(&e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
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
