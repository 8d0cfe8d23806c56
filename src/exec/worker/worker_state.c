/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and removes the directories that the attempts of a run share. */
#include "exec/worker/worker_state.h"
#include "base/auto.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/child/launch.h"
#include "exec/child/sandbox.h"
#include "exec/child/user.h"
#include "exec/worker/launchers.h"
#include "exec/worker/orphans.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_launch.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_MAX_LEN 48
#define LOOK_INTERVAL (200 * USEC_MSEC)
#define REMOVE_TIMEOUT (60 * USEC_SEC)
#define REMOVALS_MAX 64 /* at a time; the daemon asks again for others, see retention.c */

/* A directory that a process is emptying. */
struct state_removal {
	struct workers *all;              /* borrowed */
	int64_t run;
	struct user *user;                /* owned */
	struct launcher_start *launching; /* NULL: the process exists or could not be created */
	int pidfd;                        /* owned; -1: no process */
	struct deadline look;
	usec_t until;
};

static void state_name(int64_t run, char name[NAME_MAX_LEN])
{
	snprintf(name, NAME_MAX_LEN, "%" PRId64 ".state", run);
}

static void state_remove(struct workers *ws, int64_t run);

static int state_create(struct workers *ws, int64_t run, bool first, const char *name, const struct user *user)
{
	int dir = ws->output_dir;

	if (mkdirat(dir, name, 0700) < 0) {
		/* of a run of another store, or of a start that failed */
		if (errno != EEXIST || !first)
			return errno == EEXIST ? 0 : -errno;
		if (unlinkat(dir, name, AT_REMOVEDIR) < 0) {
			state_remove(ws, run);
			return -EBUSY;
		}
		if (mkdirat(dir, name, 0700) < 0)
			return -errno;
	}
	/* only the spawner can change names in the output directory, whose setgid bit the new directory has inherited */
	if (ws->change_user && fchownat(dir, name, user->uid, user->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return fchmodat(dir, name, 0700, 0) < 0 ? -errno : 0;
}

static int state_open(const struct workers *ws, const char *name, const struct user *user, int *ret)
{
	AUTO_FD fd = openat(ws->output_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (ws->change_user && st.st_uid != user->uid)
		return -EACCES;
	*ret = STEAL_FD(fd);
	return 0;
}

int worker_state_open(struct worker *w, const struct user *user, int *ret)
{
	char name[NAME_MAX_LEN];
	int r;

	state_name(w->run, name);
	r = state_create(w->all, w->run, w->attempt <= 1, name, user);
	return r < 0 ? r : state_open(w->all, name, user, ret);
}

static bool state_in_use(const struct workers *ws, int64_t run)
{
	const struct worker *w = map_get(&ws->by_run, run);

	for (; w; w = w->same_run)
		if (w->phase != WORKER_ENDED)
			return true;
	return false;
}

int worker_state_open_idle(struct workers *ws, int64_t run, const struct user *user, bool create, int *ret)
{
	char name[NAME_MAX_LEN];
	int r = 0;

	if (state_in_use(ws, run) || map_get(&ws->states_removed, run))
		return -EBUSY;
	state_name(run, name);
	if (create)
		r = state_create(ws, run, false, name, user);
	return r < 0 ? r : state_open(ws, name, user, ret);
}

/* ---- removal ---- */

static void removal_free(struct state_removal *x)
{
	if (x->launching)
		launcher_start_cancel(x->launching);
	if (x->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, x->pidfd, SIGKILL, NULL, 0);
	auto_fd_close(&x->pidfd);
	deadline_clear(&x->all->state_removals, &x->look);
	map_take(&x->all->states_removed, x->run);
	free(x->user);
	free(x);
}

static void on_removal_launched(enum launch_event event, const struct child_report *report, void *arg)
{
	struct state_removal *x = arg;
	struct child child;

	if (event == LAUNCH_BLOCKED)
		return;
	x->launching = NULL;
	if (worker_launch_adopt(x->all, report, &child) == 0) {
		x->pidfd = child.pidfd;
		orphans_add_helper(x->all, child.pid);
	}
}

/* The process has the rights of the owner and no others. */
static int removal_launch(struct state_removal *x, int dir)
{
	char *const argv[] = {(char *)"/proc/self/exe", (char *)"--remove-state", NULL}, *const none[] = {NULL};
	struct workers *ws = x->all;
	AUTO_FD null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct sandbox_prepared plain = {.all = ws->sandboxes,
		.profile = {.capabilities = SANDBOX_CAPS_ALL, .part[SANDBOX_PRIVILEGES] = 1}};
	const struct child_limits limits = {.v = {{RLIMIT_CORE, {0, 0}, true}, {RLIMIT_NOFILE, ws->nofile, true}}, .n = 2};

	if (null < 0)
		return -errno;
	return launchers_start(&ws->launchers, x->user->uid, &(struct child_plan){.user = ws->change_user ? x->user : NULL,
		.argv = argv, .envp = none, .cwd = "/", .in = dir, .out = null, .umask = 077, .limits = &limits, .parent = getpid(),
		.sandbox = &plain, .home = "/", .artifact = -1}, on_removal_launched, x, &x->launching);
}

static void state_remove(struct workers *ws, int64_t run)
{
	AUTO_FD dir = -1;
	char name[NAME_MAX_LEN];
	struct state_removal *x;
	struct stat st;

	state_name(run, name);
	if (map_get(&ws->states_removed, run) || ws->states_removed.used >= REMOVALS_MAX)
		return;
	if (unlinkat(ws->output_dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return;
	dir = openat(ws->output_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0) {
		log_warning("could not open the directory '%s' to remove it: %s", name, strerror(errno));
		return;
	}
	x = xcalloc(1, sizeof(*x));
	*x = (struct state_removal){.all = ws, .run = run, .pidfd = -1, .user = xcalloc(1, sizeof(*x->user)),
		.until = clock_boot(&clock_system) + REMOVE_TIMEOUT};
	x->user->uid = st.st_uid;
	x->user->gid = x->user->groups[0] = st.st_gid;
	x->user->groups_n = 1;
	map_put(&ws->states_removed, run, x);
	deadline_set(&ws->state_removals, &x->look, clock_boot(&clock_system) + LOOK_INTERVAL);
	if (removal_launch(x, dir) < 0)
		removal_free(x); /* the daemon asks again */
}

void worker_state_forget(struct workers *ws, int64_t run)
{
	if (!state_in_use(ws, run))
		state_remove(ws, run);
}

void worker_states_run_due(struct workers *ws, usec_t now)
{
	struct deadline *d;

	while ((d = deadlines_take(&ws->state_removals, now))) {
		struct state_removal *x = CONTAINER_OF(d, struct state_removal, look);
		char name[NAME_MAX_LEN];

		state_name(x->run, name);
		if (unlinkat(ws->output_dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT || now >= x->until)
			removal_free(x);
		else
			deadline_set(&ws->state_removals, &x->look, now + LOOK_INTERVAL);
	}
}

void worker_states_done(struct workers *ws)
{
	struct state_removal *x;

	for (size_t i = 0; (x = map_next(&ws->states_removed, &i));)
		removal_free(x);
	map_done(&ws->states_removed);
	deadlines_done(&ws->state_removals);
}
