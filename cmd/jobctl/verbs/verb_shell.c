/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl shell'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/limits.h"
#include "core/job/sandbox_profile.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/verbs/verbs.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NO_COMMAND 127

/* ---- who ---- */

/*
 * The command runs with the rights of the caller. root does not become the owner here: the owner's
 * command could write to root's terminal.
 */
static bool check_owner(const json_t *job, const char *typed, struct err *e)
{
	const char *owner = member_text(job, "owner");

	if (member_int(job, "uid") == (int64_t)geteuid() && getuid() == geteuid())
		return true;
	return err_set(e, ERR_DENIED,
		"job '%.128s' belongs to '%s', and its commands run with the rights of the owner: "
		"log in as '%s', or use 'su --pty %s -c \"jobctl shell %.128s\"'",
		typed, owner, owner, owner, typed);
}

/* ---- environment ---- */

static bool is_set(const struct strv *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=')
			return true;
	return false;
}

/* Values that only a run has are left out, and so are files of secrets, which are not there. */
static void build_env(const json_t *job, const struct job_spec *s, bool interactive,
	struct strv *ret)
{
	AUTO_DONE(strv) all = {};
	const char *term = getenv("TERM");

	job_env_list(job, NULL, s, &all);
	for (size_t i = 0; i < all.n; i++)
		if (job_env_known(all.v[i]) && !text_starts(all.v[i], "JOBSCHED_SECRET_"))
			strv_add(ret, all.v[i]);
	if (!s->origin && !is_set(ret, "LANG"))
		strv_add(ret, "LANG=C.UTF-8");
	if (interactive && term && !is_set(ret, "TERM"))
		strv_take(ret, xprintf("TERM=%s", term));
}

static const char *env_value(const struct strv *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=')
			return env->v[i] + len + 1;
	return NULL;
}

/* ---- what is not applied ---- */

static void put_missing(const struct job_spec *s, struct buf *out)
{
	const struct {
		bool has;
		const char *name;
	} parts[] = {
		{!text_equal(s->sandbox ? s->sandbox : SANDBOX_PRESET, "compat"), "the sandbox"},
		{s->mem != 0, "mem"},
		{s->cpu != NULL, "cpu"},
		{s->pids != 0, "pids"},
		{s->timeout != 0 || s->run_timeout != 0, "time limits"},
		{s->secrets.n > 0, "secrets"},
		{s->artifact != NULL, "the artifact"},
		{s->stdin_data.data != NULL, "standard input"},
	};

	for (size_t i = 0; i < ELEMENTS(parts); i++)
		if (parts[i].has)
			buf_printf(out, "%s%s", out->len ? ", " : "", parts[i].name);
}

static void report(const json_t *job, const struct job_spec *s)
{
	AUTO_DONE(buf) missing = {};
	AUTO_DONE(buf) name = {};

	ref_job_words(job, &name);
	put_missing(s, &missing);
	if (missing.len)
		ctl_say("environment of job %s; not applied here: %s", name.data, missing.data);
	else
		ctl_say("environment of job %s", name.data);
}

/* ---- process ---- */

static bool apply_limits(const struct job_spec *s, struct err *e)
{
	for (size_t i = 0; i < s->limits.n; i++) {
		struct rlimit limit;
		int resource;
		int64_t value;

		if (!limit_resource_parse(s->limits.v[i], &resource, &value, e))
			return false;
		limit.rlim_cur = limit.rlim_max =
			value == LIMIT_UNLIMITED ? RLIM_INFINITY : (rlim_t)value;
		if (setrlimit((__rlimit_resource_t)resource, &limit) < 0)
			return err_errno(e, errno, "could not set the limit '%s'", s->limits.v[i]);
	}
	return true;
}

static bool apply_priority(const struct job_spec *s, struct err *e)
{
	int64_t level;

	if (s->nice && setpriority(PRIO_PROCESS, 0, (int)s->nice) < 0)
		return err_errno(e, errno, "could not set the nice value %" PRId64, s->nice);
	if (!s->ionice)
		return true;
	if (!limit_ionice_parse(s->ionice, &level, e))
		return false;
	level = level == LIMIT_IONICE_IDLE
			? IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)
			: IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, level - 1);
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, (int)level) < 0)
		return err_errno(e, errno, "could not set the I/O priority '%s'", s->ionice);
	return true;
}

static bool apply_place(const struct job_spec *s, const struct strv *env, struct err *e)
{
	const char *dir = s->cwd ? s->cwd : env_value(env, "HOME");

	if (chdir(dir) < 0)
		return err_errno(e, errno, "could not enter the directory '%s' of the job", dir);
	umask((mode_t)s->umask);
	return true;
}

/* An interactive shell without start-up files, which could change the environment. */
static void shell_words(const struct strv *env, struct strv *ret)
{
	static const struct {
		const char *name, *options[3];
	} shells[] = {{"bash", {"--noprofile", "--norc", "-i"}}, {"zsh", {"-f", "-i"}},
		{"fish", {"--no-config", "-i"}}};
	const char *shell = env_value(env, "SHELL");
	const char *base = shell && strrchr(shell, '/') ? strrchr(shell, '/') + 1 : "sh";

	if (!shell || access(shell, X_OK) < 0 || text_equal(base, "nologin") ||
		text_equal(base, "false")) {
		shell = "/bin/sh";
		base = "sh";
	}
	strv_add(ret, shell);
	for (size_t i = 0; i < ELEMENTS(shells); i++)
		for (size_t k = 0; text_equal(base, shells[i].name) && k < 3; k++)
			if (shells[i].options[k])
				strv_add(ret, shells[i].options[k]);
	if (ret->n == 1)
		strv_add(ret, "-i");
}

/* The command is searched in the PATH of the job. Returns only after a failure. */
static int execute(const struct strv *words, const struct strv *env)
{
	struct err e = {};
	int errnum;

	if (setenv("PATH", env_value(env, "PATH") ? env_value(env, "PATH") : "/usr/bin:/bin", 1) < 0)
		abort();
	execvpe(words->v[0], words->v, env->v);
	errnum = errno;
	err_errno(&e, errnum, "could not execute '%s' with the PATH of the job", words->v[0]);
	ctl_fail(&e);
	return errnum == ENOENT ? EXIT_NO_COMMAND : EXIT_CANNOT_EXECUTE;
}

int verb_shell(struct ctl *c, const struct args *a)
{
	AUTO_DONE(job_spec) spec;
	AUTO_DONE(strv) env = {};
	AUTO_DONE(strv) command = {};
	json_auto_t *job = NULL;
	char *const *words;
	size_t n = args_operands(a, &words);
	bool interactive = n < 2 || (n == 2 && text_equal(words[1], "--"));
	struct ref ref;
	struct err e = {};

	job_spec_init(&spec);
	if (!ref_parse(words[0], &ref, &e) || !api_job(c, &ref, &job, &e) ||
		!job_object_read_spec(job, &spec, &e) || !check_owner(job, words[0], &e))
		return ctl_fail(&e);
	build_env(job, &spec, interactive, &env);
	for (size_t i = 1 + (n > 1 && text_equal(words[1], "--")); i < n; i++)
		strv_add(&command, words[i]);
	if (interactive)
		shell_words(&env, &command);
	if (!apply_place(&spec, &env, &e) || !apply_priority(&spec, &e) || !apply_limits(&spec, &e))
		return ctl_fail(&e);
	if (!args_has(a, "quiet"))
		report(job, &spec);
	return execute(&command, &env);
}
