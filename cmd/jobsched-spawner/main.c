/* SPDX-License-Identifier: Apache-2.0 */
/* The jobsched-spawner program: options, privileges, start or resume. */
#include "base/auto.h"
#include "base/detach.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "exec/child/launch_request.h"
#include "exec/child/user.h"
#include "exec/spawner/lookup_process.h"
#include "exec/spawner/open_file.h"
#include "exec/spawner/reexec.h"
#include "exec/spawner/reexec_state.h"
#include "exec/spawner/sd_notify.h"
#include "exec/spawner/secret_reader.h"
#include "exec/spawner/spawner.h"
#include "exec/spawner/spawner_conf.h"
#include "exec/spawner/table_reader.h"
#include "exec/spawner/warrant_key.h"
#include "exec/worker/cgroup.h"
#include "exec/worker/ends_file.h"
#include "exec/worker/ends_spool.h"
#include "exec/worker/pam.h"
#include "exec/worker/state_archive.h"
#include "exec/worker/worker_state.h"
#include "exec/worker/workers.h"
#include "jobsched-spawner/runtime_dir.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GO_ON (-1) /* continue; not an exit status */
#define EXIT_USAGE 2
#define CONFIG_DEFAULT JOBSCHED_SYSCONFDIR "/spawner.conf"
#define EXIT_CONFIG 78
#define EXIT_UNAVAILABLE 69 /* another spawner holds the lock */

struct options {
	struct runtime_dirs dirs;
	const char *config, *cgroup;
	usec_t linger;
	bool background, system;
	int resume;         /* descriptor of the re-exec state; -1: a new spawner */
	char *const *argv;
};

/* Of a spawner with --system. */
struct authority {
	struct spawner_conf conf;
	struct user daemon;
	struct warrant_key key;
};

static void authority_done(struct authority *a)
{
	spawner_conf_done(&a->conf);
}

/* Reads spawner.conf and looks up the user of the daemon. */
static bool authority_load(const struct options *o, struct authority *ret, struct err *e)
{
	const char *path = o->config ? o->config : CONFIG_DEFAULT;

	if (geteuid() != 0)
		return err_set(e, ERR_DENIED,
			"--system requires root; without it the spawner serves one user");
	spawner_conf_init(&ret->conf);
	if (!spawner_conf_read(&ret->conf, path, e))
		return false;
	if (ret->conf.pam != PAM_POLICY_OFF && !pam_available())
		return err_set(e, ERR_REFUSED,
			"'%s' sets 'pam', but this program was built without PAM", path);
	return lookup_process_wait(&(struct lookup_request){.whom = ret->conf.engine_user}, &ret->daemon, e) ||
	       err_wrap(e, "could not look up the user of the daemon ('engine-user' in '%s')", path);
}

/* ---- options ---- */

/* Called by an older program before its re-exec, with all options of that program. */
static int option_can_read_state(struct options *o, const char *version)
{
	AUTO_DONE(authority) who = {};
	struct err e = {};
	int64_t number;

	if (!text_parse_int(version, REEXEC_STATE_VERSION_OLDEST, REEXEC_STATE_VERSION, &number))
		return EXIT_FAILURE;
	if (!o->system || authority_load(o, &who, &e))
		return EXIT_SUCCESS;
	fprintf(stderr, "jobsched-spawner: %s\n", e.msg);
	return EXIT_FAILURE;
}

static int option_linger(struct options *o, const char *text)
{
	int64_t seconds;

	if (!text_parse_int(text, 0, 366 * 86400, &seconds)) {
		fprintf(stderr, "jobsched-spawner: '%s' is not a number of seconds\n", text);
		return EXIT_USAGE;
	}
	o->linger = seconds * USEC_SEC;
	return GO_ON;
}

static int option_log_format(struct options *o, const char *text)
{
	enum log_format format;

	(void)o;
	if (!log_format_parse(text, &format)) {
		fprintf(stderr, "jobsched-spawner: --log-format: '%s' is not text or json\n", text);
		return EXIT_USAGE;
	}
	log_set_format(format);
	return GO_ON;
}

static int option_resume(struct options *o, const char *text)
{
	int64_t fd;

	if (!text_parse_int(text, 3, INT32_MAX, &fd))
		return EXIT_USAGE;
	o->resume = (int)fd;
	return GO_ON;
}

static int option_lookup(struct options *o, const char *whom)
{
	(void)o;
	return lookup_main(whom, false);
}

static int option_lookup_account(struct options *o, const char *whom)
{
	(void)o;
	return lookup_main(whom, true);
}

static int option_read_secrets(struct options *o, const char *none)
{
	(void)o;
	(void)none;
	return secret_reader_main();
}

static int option_write_ends(struct options *o, const char *none)
{
	(void)o;
	(void)none;
	return ends_spool_main();
}

static int option_launcher(struct options *o, const char *none)
{
	(void)o;
	(void)none;
	return launcher_main();
}

static int option_open_file(struct options *o, const char *none)
{
	(void)o;
	(void)none;
	return open_file_main();
}

static int option_remove_state(struct options *o, const char *none)
{
	(void)o;
	(void)none;
	return worker_state_remove_main();
}

static int option_state(struct options *o, const char *verb)
{
	(void)o;
	return state_archive_main(verb);
}

static int option_read_tables(struct options *o, const char *none)
{
	(void)o;
	(void)none;
	return table_reader_main();
}

static int option_version(struct options *o, const char *none)
{
	(void)o;
	(void)none;
	puts("jobsched-spawner " PACKAGE_VERSION);
	return EXIT_SUCCESS;
}

static int option_help(struct options *o, const char *none);

/*
 * An option stores its argument or a flag at 'offset', or calls 'fn', which returns GO_ON or an
 * exit status.
 */
static const struct {
	const char *name, *arg;
	size_t offset;
	int (*fn)(struct options *o, const char *value);
	const char *help; /* NULL: internal option */
} table[] = {
	{"runtime-dir", "DIR", offsetof(struct options, dirs.runtime_dir), NULL,
		"directory of the socket"},
	{"output-dir", "DIR", offsetof(struct options, dirs.output_dir), NULL,
		"directory for the output of jobs"},
	{"state-dir", "DIR", offsetof(struct options, dirs.state_dir), NULL,
		"directory for lock, id and warrant key (default: the runtime directory)"},
	{"system", NULL, offsetof(struct options, system), NULL,
		"serve all users: run as root, start each job as its owner"},
	{"config", "FILE", offsetof(struct options, config), NULL,
		"configuration for --system (default: " CONFIG_DEFAULT ")"},
	{"cgroup", "PLACE", offsetof(struct options, cgroup), NULL,
		"control groups for runs: a directory, 'none' or 'auto' (default: auto)"},
	{"linger", "SECONDS", 0, option_linger, "exit after this time without daemon, worker or unreported end (default: 60; 0: never)"},
	{"background", NULL, offsetof(struct options, background), NULL,
		"return when it listens; log to spawner.log in the runtime directory"},
	{"log-format", "FORMAT", 0, option_log_format, "text, or json for one object per line (default: text)"},
	{"can-read-state", "N", 0, option_can_read_state,
		"exit with 0 if this program can resume from version N of the state, otherwise with 1\n"
		"                      (used on SIGHUP, before the running spawner executes this program)"},
	{"help", NULL, 0, option_help, "show this help"},
	{"version", NULL, 0, option_version, "show the version"},
	/* internal options */
	{"resume", "FD", 0, option_resume, NULL},
	{"lookup", "WHOM", 0, option_lookup, NULL},
	{"lookup-account", "WHOM", 0, option_lookup_account, NULL},
	{"read-secrets", NULL, 0, option_read_secrets, NULL},
	{"write-ends", NULL, 0, option_write_ends, NULL},
	{"launch", NULL, 0, option_launcher, NULL},
	{"open-file", NULL, 0, option_open_file, NULL},
	{"remove-state", NULL, 0, option_remove_state, NULL},
	{"state", "VERB", 0, option_state, NULL},
	{"read-tables", NULL, 0, option_read_tables, NULL},
};

static void spawner_usage_print(FILE *out)
{
	fputs("usage: jobsched-spawner --runtime-dir DIR --output-dir DIR [OPTION…]\n"
	      "Starts the commands of jobs for jobschedd and reports how they end. In user mode jobschedd starts it.\n\n", out);
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		AUTO_TEXT name = xprintf("--%s %s", table[i].name, table[i].arg ? table[i].arg : "");

		if (table[i].help)
			fprintf(out, "  %-18s  %s\n", name, table[i].help);
	}
}

static int option_help(struct options *o, const char *none)
{
	(void)o;
	(void)none;
	spawner_usage_print(stdout);
	return EXIT_SUCCESS;
}

static int spawner_option_apply(struct options *o, size_t i, const char *value)
{
	char *at = (char *)o + table[i].offset;

	if (table[i].fn)
		return table[i].fn(o, value);
	if (table[i].arg)
		*(const char **)at = value;
	else
		*(bool *)at = true;
	return GO_ON;
}

/* GO_ON, or the exit status. */
static int spawner_options_parse(int argc, char **argv, struct options *o)
{
	struct option longs[ELEMENTS(table) + 1] = {};
	int c, i = 0, code = GO_ON;

	for (size_t k = 0; k < ELEMENTS(table); k++)
		longs[k] = (struct option){table[k].name, table[k].arg ? required_argument : no_argument, NULL, 0};
	while ((c = getopt_long(argc, argv, "", longs, &i)) == 0)
		if ((code = spawner_option_apply(o, (size_t)i, optarg)) != GO_ON)
			return code;
	if (c != -1) {
		fputs("try 'jobsched-spawner --help'\n", stderr);
		return EXIT_USAGE;
	}
	if (!o->dirs.state_dir)
		o->dirs.state_dir = o->dirs.runtime_dir;
	if (optind == argc && o->dirs.runtime_dir && o->dirs.output_dir &&
		(o->system || !o->config))
		return GO_ON;
	spawner_usage_print(stderr);
	return EXIT_USAGE;
}

/* ---- process setup ---- */

/*
 * Resets signal handlers, blocks all signals, makes sure that descriptors 0 to 2 are open, closes
 * inherited ones.
 */
static void process_state_reset(bool resume)
{
	static const char preset[64]; /* struct sigaction of the kernel, all zero: SIG_DFL */
	sigset_t all;
	int fd;

	/* A system call, because libc does not reset its two internal signals. */
	for (int s = 1; s < NSIG; s++)
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
	umask(027); /* the group of the daemon may read the output of jobs */
}

/* The log of a spawner in the background. It is emptied at the start if it is larger than 1 MiB. */
static int background_log_open(const char *dir)
{
	AUTO_TEXT path = xprintf("%s/spawner.log", dir);
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > (1 << 20) && ftruncate(fd, 0) < 0)
		return -1;
	return STEAL_FD(fd);
}

static int spawner_background(const char *dir)
{
	AUTO_FD log = -1;

	if (io_mkdirs(dir, 0700) < 0)
		return -1;
	log = background_log_open(dir);
	return detach_start(log);
}

/* Sets the limits of spawner.conf for all runs of one owner together. */
static bool owner_limits_set(struct cgroups *g, const struct authority *who, struct err *e)
{
	const struct spawner_conf *c = who ? &who->conf : NULL;
	unsigned wanted, there = cgroups_enabled(g) ? g->controllers : 0;

	if (!c)
		return true;
	g->owner_limits = (struct cgroup_limits){.memory = c->owner_memory, .cpu = c->owner_cpu,
		.pids = c->owner_pids};
	wanted = (c->owner_memory ? CGROUP_MEMORY : 0U) | (c->owner_cpu ? CGROUP_CPU : 0U) | (c->owner_pids ? CGROUP_PIDS : 0U);
	if (!(wanted & ~there))
		return true;
	err_set(e, ERR_REFUSED, "spawner.conf sets limits for owners, but the control groups lack a controller for them; "
				"delegate the controllers to the service (Delegate=yes), or set limit-missing = report");
	if (c->limit_missing == MISSING_REFUSE)
		return false;
	log_warning("%s", e->msg);
	return true;
}

/*
 * Several spawners may share a parent group. The hash of the runtime directory gives each its own
 * name.
 */
static bool spawner_cgroups_open(const struct options *o, const struct authority *who,
	struct cgroups *ret, struct err *e)
{
	AUTO_TEXT real = realpath(o->dirs.runtime_dir, NULL);
	const char *of = real ? real : o->dirs.runtime_dir;
	unsigned char sum[SHA256_LEN];
	char name[SHA256_HEX];
	struct sha256 hash;

	sha256_init(&hash);
	sha256_add(&hash, of, strlen(of));
	sha256_end(&hash, sum);
	sha256_hex(sum, name)[12] = '\0';
	if (!cgroups_open(ret, o->cgroup, name, e))
		return false;
	if (cgroups_enabled(ret))
		log_info("using control groups in '%s'", ret->path);
	return owner_limits_set(ret, who, e);
}

static struct runtime_dirs dirs_for_authority(const struct options *o, const struct authority *who)
{
	struct runtime_dirs p = o->dirs;

	p.daemon = who ? &who->daemon : NULL;
	return p;
}

/* Opens the warrant key and, with require-warrant = all, the warrant socket. */
static bool warrants_prepare(const struct runtime_dirs *p, struct authority *who, int *ret_listen,
	struct err *e)
{
	AUTO_FD state = open(p->state_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (state < 0)
		return err_errno(e, errno, "could not open directory '%s'", p->state_dir);
	return warrant_key_open(&who->key, state, e) &&
	       (who->conf.require_warrant != WARRANT_ALL || runtime_dir_listen(p, SOCKET_FOR_ALL, ret_listen, e));
}

/* Runs the loop until the spawner exits. */
static int spawner_run_until_exit(const struct options *o, struct authority *who,
	struct spawner_options *so)
{
	AUTO_FD warrant_listen = -1;
	__attribute__((cleanup(reexec_done))) struct reexec program = {};
	const struct runtime_dirs p = dirs_for_authority(o, who);
	AUTO_TEXT artifacts = runtime_dir_artifact(&p);
	AUTO_TEXT notify = xprintf("%s/notify", p.runtime_dir);
	struct err e = {};
	bool ok;

	so->artifact_path = artifacts;
	so->notify_path = notify;
	so->linger = o->linger;
	so->program = &program;
	so->conf = who ? &who->conf : NULL;
	so->daemon = who ? who->daemon.uid : geteuid();
	if (who && !warrants_prepare(&p, who, &warrant_listen, &e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	so->key = who ? &who->key : NULL;
	so->warrant_listen = warrant_listen;
	ok = reexec_init(&program, o->argv, &e) && spawner_run(so, &e);
	runtime_dir_socket_remove(&p, SOCKET);
	if (warrant_listen >= 0)
		runtime_dir_socket_remove(&p, SOCKET_FOR_ALL);
	if (!ok)
		log_error("%s", e.msg);
	else
		log_info("spawner %s exits", so->id);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int spawner_begin(const struct options *o, int *ready)
{
	AUTO_FD lock = -1;
	AUTO_FD output = -1;
	AUTO_FD sock = -1;
	AUTO_DONE(authority) authority = {};
	AUTO_DONE(cgroups) groups = {.root = -1};
	struct authority *who = o->system ? &authority : NULL;
	char id[RANDOM_ID_LEN + 1];
	struct runtime_dirs p;
	struct err e = {};

	if (who && !authority_load(o, who, &e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	p = dirs_for_authority(o, who);
	if (!runtime_dir_open(&p, &lock, &output, &e)) {
		log_error("%s", e.msg);
		return e.kind == ERR_CONFLICT ? EXIT_UNAVAILABLE : EXIT_FAILURE;
	}
	if (!runtime_dir_take_over(&p, id, &e) || !spawner_cgroups_open(o, who, &groups, &e) ||
		!runtime_dir_listen(&p, SOCKET, &sock, &e)) {
		log_error("%s", e.msg);
		return EXIT_FAILURE;
	}
	log_info("spawner %s listens at '%s/" SOCKET "'", id, p.runtime_dir);
	sd_notify_send("READY=1");
	detach_report(ready, 0);
	return spawner_run_until_exit(o, who, &(struct spawner_options){.listen = sock, .output_dir = output, .lock = lock, .id = id,
			       .groups = &groups});
}

/* Resumes after a re-exec: same process, same id, same workers. */
static int spawner_continue(const struct options *o)
{
	AUTO_DONE(cgroups) groups = {.root = -1};
	struct reexec_state *state = NULL;
	AUTO_DONE(authority) authority = {};
	struct authority *who = o->system ? &authority : NULL;
	const struct reexec_state_head *h;
	struct err e = {};
	int code;

	/* execveat() of a descriptor sets the name to a number. */
	prctl(PR_SET_NAME, "jobsched-spawner");
	if (!reexec_state_open(o->resume, &state, &e) || (who && !authority_load(o, who, &e))) {
		log_error("could not resume from the state: %s", e.msg);
		return EXIT_FAILURE;
	}
	h = reexec_state_head(state);
	if (!cgroups_resume(&groups, h->groups, h->groups_next, &e) ||
		!owner_limits_set(&groups, who, &e)) {
		log_error("%s", e.msg);
		reexec_state_free(state);
		return EXIT_FAILURE;
	}
	sd_notify_send("READY=1");
	code = spawner_run_until_exit(o, who, &(struct spawner_options){.listen = h->listen, .output_dir = h->output_dir, .lock = h->lock,
				.id = h->id, .groups = &groups, .resume = state});
	reexec_state_free(state);
	return code;
}

int main(int argc, char **argv)
{
	struct options o = {.cgroup = "auto", .linger = 60 * USEC_SEC, .resume = -1, .argv = argv};
	int code = spawner_options_parse(argc, argv, &o);
	struct err e = {};
	int ready = -1;

	if (code != GO_ON)
		return code;
	process_state_reset(o.resume >= 0);
	log_open("jobsched-spawner", LOG_LEVEL_INFO, NULL);
	if (!failpoints_open(&e)) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	if (o.resume >= 0)
		return spawner_continue(&o);
	if (o.background && (ready = spawner_background(o.dirs.runtime_dir)) < 0) {
		log_error("could not go to the background in '%s'", o.dirs.runtime_dir);
		return EXIT_FAILURE;
	}
	code = spawner_begin(&o, &ready);
	detach_report(&ready, code);
	return code;
}
