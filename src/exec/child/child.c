/* SPDX-License-Identifier: Apache-2.0 */
/* The setup steps of a child, from clone() to exec(). They make system calls only. */
#include "exec/child/child.h"
#include "base/auto.h"
#include "base/failpoint.h"
#include "exec/child/child_steps.h"
#include "exec/child/in_child.h"
#include "exec/child/sandbox.h"
#include "exec/child/user.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OOM_SCORE "200"

static IN_CHILD int step_cgroup(const struct launch *o)
{
	int fd, error = 0;

	if (!o->moves)
		return 0;
	fd = openat(*o->plan->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	return error;
}

static IN_CHILD int step_session(const struct launch *o)
{
	(void)o;
	return setsid() < 0 ? errno : 0;
}

IN_CHILD bool child_oom_score_set(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, OOM_SCORE, sizeof(OOM_SCORE) - 1) == sizeof(OOM_SCORE) - 1;
	close(fd);
	return ok;
}

static IN_CHILD int step_priorities(const struct launch *o)
{
	const struct child_limits *l = o->plan->limits;

	if (!o->plan->oom_score_set)
		(void)child_oom_score_set();
	if (l->nice && setpriority(PRIO_PROCESS, 0, l->nice) < 0)
		return errno;
	if (!l->ioprio)
		return 0;
	return syscall(SYS_ioprio_set, 1 /* a process */, 0, l->ioprio) < 0 ? errno : 0;
}

/*
 * Called after the last open(): the descriptors of the child may exceed the limit of open files
 * that the command gets.
 */
static IN_CHILD int step_limits(const struct launch *o)
{
	const struct child_limits *l = o->plan->limits;

	for (size_t i = 0; i < l->n; i++)
		if (syscall(SYS_prlimit64, 0, l->v[i].resource, &l->v[i].limit, NULL) < 0)
			return errno;
	return 0;
}

/*
 * Mounts of the child stay in its mount namespace. Later mounts of the system appear there too,
 * unless the profile has made the mounts private.
 */
static IN_CHILD int step_artifact(const struct launch *o)
{
	const struct child_plan *p = o->plan;

	if (!p->artifact_path || p->artifact < 0)
		return 0;
	if ((!(p->sandbox->namespaces & CLONE_NEWNS) && unshare(CLONE_NEWNS) < 0) ||
		mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
		move_mount(p->artifact, "", AT_FDCWD, p->artifact_path,
			MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno;
	return 0;
}

/*
 * The next steps change the user, up to step_verify(). They use raw system calls, because the
 * functions of the C library would signal the threads of the creator. A child without a user keeps
 * that of the spawner.
 */
static IN_CHILD int step_groups(const struct launch *o)
{
	const struct user *u = o->plan->user;
	int error = o->plan->argv ? failpoint(FP_SPAWN_DROP) : 0;

	if (error)
		return error;
	return u && syscall(SYS_setgroups, (long)u->groups_n, u->groups) < 0 ? errno : 0;
}

static IN_CHILD int step_gid(const struct launch *o)
{
	const struct user *u = o->plan->user;

	return u && syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ? errno : 0;
}

static IN_CHILD int step_uid(const struct launch *o)
{
	const struct user *u = o->plan->user;

	return u && syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0 ? errno : 0;
}

static IN_CHILD bool groups_match(const struct user *u)
{
	gid_t now[USER_GROUPS_MAX];
	long n = syscall(SYS_getgroups, (long)USER_GROUPS_MAX, now);

	if (n != (long)u->groups_n)
		return false;
	/* both are sorted: one by the lookup, the other by the kernel */
	for (long i = 0; i < n; i++)
		if (now[i] != u->groups[i])
			return false;
	return true;
}

/* Uid 0 and gid 0 cannot be regained, and there are no capabilities. */
static IN_CHILD bool has_no_privileges(const struct user *u)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {};

	if (syscall(SYS_setresuid, -1, 0, -1) == 0 ||
		(u->gid != 0 && syscall(SYS_setresgid, -1, 0, -1) == 0))
		return false;
	if (syscall(SYS_capget, &head, caps) < 0)
		return false;
	return !(caps[0].effective | caps[0].permitted | caps[1].effective | caps[1].permitted);
}

static IN_CHILD int step_verify(const struct launch *o)
{
	const struct user *u = o->plan->user;
	uid_t uid[3] = {(uid_t)-1, (uid_t)-1, (uid_t)-1};
	gid_t gid[3] = {(gid_t)-1, (gid_t)-1, (gid_t)-1};

	if (!u)
		return 0;
	if (syscall(SYS_getresuid, &uid[0], &uid[1], &uid[2]) < 0 ||
		syscall(SYS_getresgid, &gid[0], &gid[1], &gid[2]) < 0)
		return errno;
	for (int i = 0; i < 3; i++)
		if (uid[i] != u->uid || gid[i] != u->gid)
			return EPERM;
	return groups_match(u) && (u->uid == 0 || has_no_privileges(u)) ? 0 : EPERM;
}

/*
 * From now on the owner can send signals to this process, and a core dump would contain the memory
 * of its creator. The change of user has set the kernel's default (fs.suid_dumpable), which may
 * allow core dumps. exec() makes the command dumpable again.
 */
static IN_CHILD int step_dumps(const struct launch *o)
{
	return o->plan->user && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? errno : 0;
}

/*
 * A job does not inherit the keys of the spawner. On a kernel without keyrings, or that forbids
 * them, there are none.
 */
static IN_CHILD int step_keyring(const struct launch *o)
{
	if (!o->plan->user || o->plan->keyring ||
		syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		return 0;
	return errno == ENOSYS || errno == EPERM ? 0 : errno;
}

static IN_CHILD int step_umask(const struct launch *o)
{
	umask(o->plan->umask);
	return 0;
}

static IN_CHILD int step_directory(const struct launch *o)
{
	if (chdir(o->plan->cwd) == 0)
		return 0;
	if (!o->plan->cwd_optional)
		return errno;
	o->report->cwd_error = errno;
	return chdir("/") < 0 ? errno : 0;
}

/*
 * The worker is killed when the spawner exits. The second check finds a spawner that exited before
 * the first call.
 */
static IN_CHILD int step_parent(const struct launch *o)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return errno;
	if (o->role == LAUNCH_PIDNS_WORKER)
		return sandbox_spawner_alive(o->plan->sandbox); /* getppid() is 0 there */
	return getppid() == o->plan->parent ? 0 : ESRCH;
}

static IN_CHILD int step_descriptors(const struct launch *o)
{
	int up[CHILD_EXTRA_FDS_MAX];

	if (dup2(o->plan->in, 0) < 0 || dup2(o->plan->out, 1) < 0 || dup2(o->plan->out, 2) < 0)
		return errno;
	/* copied above all targets first: one may have the number of another's target */
	for (size_t i = 0; i < o->plan->extra_fds_n; i++) {
		up[i] = fcntl(o->plan->extra_fds[i], F_DUPFD, 3 + CHILD_EXTRA_FDS_MAX);
		if (up[i] < 0)
			return errno;
	}
	for (size_t i = 0; i < o->plan->extra_fds_n; i++)
		if (dup2(up[i], 3 + (int)i) < 0)
			return errno;
	return close_range(3 + (unsigned)o->plan->extra_fds_n, ~0U, 0) < 0 ? errno : 0;
}

/* The spawner ignores SIGPIPE, blocks the other signals and has no handlers. */
static IN_CHILD int step_signals(const struct launch *o)
{
	const struct sigaction preset = {.sa_handler = SIG_DFL};
	sigset_t none;

	(void)o;
	sigemptyset(&none);
	return sigaction(SIGPIPE, &preset, NULL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0
		? errno
		: 0;
}

/* ---- the sandbox ---- */

static IN_CHILD int step_users(const struct launch *o)
{
	return sandbox_apply_users(o->plan->sandbox);
}

static IN_CHILD int step_network(const struct launch *o)
{
	return sandbox_apply_network(o->plan->sandbox);
}

static IN_CHILD int step_mounts(const struct launch *o)
{
	return sandbox_apply_mounts(o->plan->sandbox, o->plan->home, o->plan->artifact_path);
}

static IN_CHILD int step_capabilities(const struct launch *o)
{
	return sandbox_apply_capabilities(o->plan->sandbox, geteuid() == 0);
}

static IN_CHILD int step_privileges(const struct launch *o)
{
	return sandbox_apply_privileges(o->plan->sandbox);
}

static IN_CHILD int step_landlock(const struct launch *o)
{
	const struct child_plan *p = o->plan;

	return sandbox_apply_landlock(p->sandbox, p->home, p->state ? p->extra_fds[p->state - 1] : -1);
}

static IN_CHILD int step_seccomp(const struct launch *o)
{
	return sandbox_apply_seccomp(o->plan->sandbox);
}

/* ---- the command ---- */

/*
 * Joins the first directory of PATH and the name. Returns the rest of PATH; NULL: it was the last.
 * An empty directory is '.'.
 */
static IN_CHILD const char *candidate_next(const char *dir, const char *name, char out[PATH_MAX])
{
	size_t n = 0, k = 0;

	while (dir[n] && dir[n] != ':')
		n++;
	while (name[k])
		k++;
	out[0] = '\0';
	if (n + k + 3 <= PATH_MAX) {
		char *to = out;

		for (size_t i = 0; i < n; i++)
			*to++ = dir[i];
		if (n == 0)
			*to++ = '.';
		*to++ = '/';
		for (size_t i = 0; i <= k; i++)
			*to++ = name[i];
	}
	return dir[n] ? dir + n + 1 : NULL;
}

static IN_CHILD int step_exec(const struct launch *o)
{
	const struct child_plan *p = o->plan;
	const char *dir = p->path;
	bool denied = false, slash = false;
	char candidate[PATH_MAX];
	int error;

	if (!p->argv)
		syscall(SYS_exit_group, 0); /* a dry run */
	error = failpoint(FP_SPAWN_EXEC);
	if (error)
		return error;
	for (const char *c = p->argv[0]; *c; c++)
		slash |= *c == '/';
	if (slash) {
		execve(p->argv[0], p->argv, p->envp);
		return errno;
	}
	while (dir) {
		dir = candidate_next(dir, p->argv[0], candidate);
		if (!candidate[0])
			continue;
		execve(candidate, p->argv, p->envp);
		if (errno == EACCES)
			denied = true;
		else if (errno != ENOENT && errno != ENOTDIR)
			return errno;
	}
	return denied ? EACCES : ENOENT;
}

/*
 * The order matters. A step comes before the restriction that would forbid it. A change of uid
 * clears the parent death signal and drops the capabilities that mounts need. The seccomp filter
 * comes last.
 */
static const struct step {
	const char *name;
	int (*run)(const struct launch *o); /* 0, or an errno */
	bool by_helper; /* with a PID namespace: done by the helper, otherwise by the worker */
} steps[] = {
	{"cgroup", step_cgroup, true},
	{"session", step_session},
	{"priorities", step_priorities, true},
	{"users", step_users, true},
	{"network", step_network, true},
	{"mounts", step_mounts, true},
	{"artifact", step_artifact, true},
	{"groups", step_groups},
	{"gid", step_gid},
	{"uid", step_uid},
	{"verify", step_verify},
	{"core dumps", step_dumps},
	{"keyring", step_keyring},
	{"umask", step_umask},
	{"directory", step_directory},
	{"capabilities", step_capabilities},
	{"parent", step_parent},
	{"privileges", step_privileges},
	{"landlock", step_landlock},
	{"descriptors", step_descriptors},
	{"limits", step_limits},
	{"signals", step_signals},
	{"system calls", step_seccomp},
	{"exec", step_exec},
};

IN_CHILD bool child_steps(const struct launch *o)
{
	for (int i = 0; i < (int)ELEMENTS(steps); i++) {
		int error = 0;

		if (o->role == LAUNCH_ALONE ||
			steps[i].by_helper == (o->role == LAUNCH_PIDNS_HELPER))
			error = steps[i].run(o);
		if (error) {
			o->report->stage = i;
			o->report->error = error;
			return false;
		}
	}
	return true;
}

const char *child_stage_name(const struct child_report *w)
{
	static const char *const others[] = {
		[-STAGE_CLONE] = "clone", [-STAGE_PIDNS_INIT] = "init process"};

	return w->stage < 0 ? others[-w->stage] : steps[w->stage].name;
}

bool child_error_transient(int errnum)
{
	static const int transient[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ETXTBSY, EINTR, ETIMEDOUT};

	for (size_t i = 0; i < ELEMENTS(transient); i++)
		if (transient[i] == errnum)
			return true;
	return false;
}
