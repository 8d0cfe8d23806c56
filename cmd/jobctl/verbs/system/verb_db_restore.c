/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl db restore' by running 'jobschedd --restore'. */
#include "base/auto.h"
#include "base/err.h"
#include "base/file/paths.h"
#include "base/text.h"
#include "jobctl/args.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/progress.h"
#include "jobctl/verbs/system/verb_db.h"
#include "jobctl/verbs/verbs.h"
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_INTERRUPTED 130

/* Exit codes of jobschedd(8), and of jobctl(1) for the same error. */
static const struct {
	int theirs, ours;
} codes[] = {{0, 0}, {2, EXIT_USAGE}, {66, EXIT_NOT_FOUND}, {69, EXIT_CONFLICT},
	{77, EXIT_NOT_ALLOWED}, {78, EXIT_USAGE}};

static void execute_jobschedd(char **argv)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	static const char *const beside[] = {"jobschedd", "../sbin/jobschedd"};

	for (size_t i = 0; n > 0 && i < ELEMENTS(beside); i++) {
		AUTO_TEXT copy = xstrndup(self, (size_t)n);
		AUTO_TEXT path = xprintf("%s/%s", dirname(copy), beside[i]);

		execv(path, argv);
	}
	execvp("jobschedd", argv);
}

static int run_jobschedd(char **argv)
{
	AUTO(progress) *progress = NULL;
	struct err e = {};
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		execute_jobschedd(argv);
		err_errno(&e, errno, "cannot start 'jobschedd' for the restore");
		ctl_fail(&e);
		_exit(EXIT_FAILURE);
	}
	progress = progress_new("restoring the store");
	signal(SIGINT, SIG_IGN); /* the terminal sends it to jobschedd too, which decides */
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0) {
		err_errno(&e, errno, "cannot start 'jobschedd' for the restore");
		return ctl_fail(&e);
	}
	for (size_t i = 0; WIFEXITED(status) && i < ELEMENTS(codes); i++)
		if (WEXITSTATUS(status) == codes[i].theirs)
			return codes[i].ours;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGINT ? EXIT_INTERRUPTED : EXIT_FAILURE;
}

static bool store_exists(const char *state_dir)
{
	AUTO_TEXT store = xprintf("%s/jobs.db", state_dir);

	return access(store, F_OK) == 0;
}

/*
 * Chooses the instance whose store exists. A user's own daemon must be stopped for a restore, so the system's daemon may
 * be the one that answers although the backup is of the user's store.
 */
static bool choose_store(const struct ctl *c, bool system_answers, bool *ret_user, struct err *e)
{
	AUTO_DONE(paths) user = {};
	AUTO_DONE(paths) system = {};
	bool users, systems;

	if (!paths_find(&(struct paths_options){.user_mode = true, .instance = c->instance}, &user,
		    e) ||
		!paths_find(&(struct paths_options){.instance = c->instance}, &system, e))
		return false;
	users = store_exists(user.state_dir);
	/* The file is not found, too, if this user may not read the directory. */
	systems = system_answers || store_exists(system.state_dir);
	if (users && systems && geteuid() == 0)
		return err_set(e, ERR_INVALID,
			"there are two stores, '%s/jobs.db' and '%s/jobs.db'; choose one with 'jobctl --user db restore' "
			"or 'jobctl --system db restore'",
			user.state_dir, system.state_dir);
	*ret_user = users || (!systems && geteuid() != 0);
	return true;
}

/* A socket determines the store only if it is a default path of an instance. */
static bool choose_by_socket(const struct ctl *c, bool *ret_user, struct err *e)
{
	AUTO_DONE(paths) user = {};
	AUTO_DONE(paths) system = {};
	AUTO_TEXT published = NULL;

	if (!paths_find(&(struct paths_options){.user_mode = true, .instance = c->instance}, &user,
		    e) ||
		!paths_find(&(struct paths_options){.instance = c->instance}, &system, e))
		return false;
	published = paths_read_socket(&user);
	*ret_user =
		text_equal(c->socket_given, user.socket) || text_equal(c->socket_given, published);
	return *ret_user || text_equal(c->socket_given, system.socket) ||
	       err_set(e, ERR_INVALID,
		       "the store cannot be derived from the socket '%s'; type 'jobctl --user db restore', "
		       "'jobctl --system db restore', or 'jobschedd --store STORE --restore FILE'",
		       c->socket_given);
}

static bool choose_instance(struct ctl *c, bool *ret_user, struct err *e)
{
	struct err none = {};
	bool answers;

	if (c->where != WHERE_ANY) {
		*ret_user = c->where == WHERE_USER;
		return true;
	}
	if (c->socket_given)
		return choose_by_socket(c, ret_user, e);
	answers = connect_daemon(c, &none);
	if (answers && !verb_db_is_system(c)) {
		*ret_user = true;
		return true;
	}
	return choose_store(c, answers, ret_user, e);
}

static bool check_backup(const char *backup, bool user, struct err *e)
{
	if (access(backup, R_OK) < 0)
		return err_set(e,
			errno == ENOENT	  ? ERR_NOT_FOUND
			: errno == EACCES ? ERR_DENIED
					  : ERR_INTERNAL,
			"cannot read the backup '%s': %s", backup, strerror(errno));
	if (!user && geteuid() != 0)
		return err_set(e, ERR_DENIED,
			"only root can restore the system's store; type 'sudo jobctl --system db restore %s'",
			backup);
	return true;
}

int verb_db_restore(struct ctl *c, const struct args *a)
{
	char *argv[8] = {(char *)"jobschedd"};
	char *const *words;
	struct err e = {};
	bool user = false;
	size_t n = 1;
	int stop;

	args_operands(a, &words);
	if (!choose_instance(c, &user, &e) || !check_backup(words[0], user, &e))
		return ctl_fail(&e);
	stop = verb_db_confirm(a, "db restore",
		user ? "replace your store by this backup? (the present store is kept beside it)"
		     : "replace the system's store by this backup? (the present store is kept beside it)");
	if (stop >= 0)
		return stop;
	if (user)
		argv[n++] = (char *)"--user";
	if (c->instance) {
		argv[n++] = (char *)"--instance";
		argv[n++] = (char *)c->instance;
	}
	if (args_has(a, "from-now"))
		argv[n++] = (char *)"--from-now";
	argv[n++] = (char *)"--restore";
	argv[n++] = words[0];
	return run_jobschedd(argv);
}
