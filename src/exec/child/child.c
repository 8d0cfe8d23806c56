/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from a fresh child to the command; between clone and exec only system calls are made. */
#include "exec/child/child.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "exec/worker/cgroup.h"
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

IN_CHILD static int step_cgroup(const struct launch *o)
{
	int fd, error = 0;

	if (!o->moves)
		return 0;
	fd = openat(o->plan->cgroup->dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	return error;
}

IN_CHILD static int step_session(const struct launch *o)
{
	(void)o;
	return setsid() < 0 ? errno : 0;
}

/* Jobs go before the scheduler when memory runs out. Not to be had: in a sandbox of somebody else's. */
IN_CHILD static void set_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, OOM_SCORE, sizeof(OOM_SCORE) - 1);
	close(fd);
}

IN_CHILD static int step_priorities(const struct launch *o)
{
	const struct child_limits *l = o->plan->limits;

	set_oom_score();
	if (l->nice && setpriority(PRIO_PROCESS, 0, l->nice) < 0)
		return errno;
	return l->ioprio && syscall(SYS_ioprio_set, 1 /* a process */, 0, l->ioprio) < 0 ? errno : 0;
}

/* When nothing is opened any more: our own numbers may be beyond what the command is to have. */
IN_CHILD static int step_limits(const struct launch *o)
{
	const struct child_limits *l = o->plan->limits;

	for (size_t i = 0; i < l->n; i++)
		if (syscall(SYS_prlimit64, 0, l->v[i].resource, &l->v[i].limit, NULL) < 0)
			return errno;
	return 0;
}

/* In a mount namespace of its own, which sees what is mounted outside later, and is not seen there. */
IN_CHILD static int step_artifact(const struct launch *o)
{
	const struct child_plan *p = o->plan;

	if (!p->artifact_place || p->artifact < 0)
		return 0;
	if ((!(p->fences->namespaces & CLONE_NEWNS) && unshare(CLONE_NEWNS) < 0) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
		move_mount(p->artifact, "", AT_FDCWD, p->artifact_place, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno;
	return 0;
}

/*
 * From here to the verification: who the command is. Bare system calls, because the library's would look for threads.
 * A child without a user stays who we are.
 */
IN_CHILD static int step_groups(const struct launch *o)
{
	const struct user *u = o->plan->user;
	int error = o->plan->argv ? failpoint(FP_SPAWN_DROP) : 0;

	if (error)
		return error;
	return u && syscall(SYS_setgroups, (long)u->groups_n, u->groups) < 0 ? errno : 0;
}

IN_CHILD static int step_gid(const struct launch *o)
{
	const struct user *u = o->plan->user;

	return u && syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ? errno : 0;
}

IN_CHILD static int step_uid(const struct launch *o)
{
	const struct user *u = o->plan->user;

	return u && syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0 ? errno : 0;
}

IN_CHILD static bool groups_match(const struct user *u)
{
	gid_t now[USER_GROUPS_MAX];
	long n = syscall(SYS_getgroups, (long)USER_GROUPS_MAX, now);

	if (n != (long)u->groups_n)
		return false;
	for (long i = 0; i < n; i++) /* both are sorted: ours by the lookup, theirs by the kernel */
		if (now[i] != u->groups[i])
			return false;
	return true;
}

/* No way back, and nothing of root's is left but the name. */
IN_CHILD static bool has_no_privileges(const struct user *u)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {};

	if (syscall(SYS_setresuid, -1, 0, -1) == 0 || (u->gid != 0 && syscall(SYS_setresgid, -1, 0, -1) == 0))
		return false;
	if (syscall(SYS_capget, &head, caps) < 0)
		return false;
	return !(caps[0].effective | caps[0].permitted | caps[1].effective | caps[1].permitted);
}

IN_CHILD static int step_verify(const struct launch *o)
{
	const struct user *u = o->plan->user;
	uid_t uid[3] = {(uid_t)-1, (uid_t)-1, (uid_t)-1};
	gid_t gid[3] = {(gid_t)-1, (gid_t)-1, (gid_t)-1};

	if (!u)
		return 0;
	if (syscall(SYS_getresuid, &uid[0], &uid[1], &uid[2]) < 0 || syscall(SYS_getresgid, &gid[0], &gid[1], &gid[2]) < 0)
		return errno;
	for (int i = 0; i < 3; i++)
		if (uid[i] != u->uid || gid[i] != u->gid)
			return EPERM;
	return groups_match(u) && (u->uid == 0 || has_no_privileges(u)) ? 0 : EPERM;
}

/*
 * The owner can send this process signals from now on, and its memory is that of the process that made it. The change of
 * user has set the kernel's default (fs.suid_dumpable), which may allow core dumps. exec() makes the command dumpable again.
 */
IN_CHILD static int step_dumps(const struct launch *o)
{
	return o->plan->user && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? errno : 0;
}

/* Keys of ours are nobody's; a kernel without keyrings, or one that forbids them, has none to inherit. */
IN_CHILD static int step_keyring(const struct launch *o)
{
	if (!o->plan->user || o->plan->keyring || syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		return 0;
	return errno == ENOSYS || errno == EPERM ? 0 : errno;
}

IN_CHILD static int step_umask(const struct launch *o)
{
	umask(o->plan->umask);
	return 0;
}

IN_CHILD static int step_directory(const struct launch *o)
{
	if (chdir(o->plan->cwd) == 0)
		return 0;
	if (!o->plan->cwd_optional)
		return errno;
	o->word->cwd_error = errno;
	return chdir("/") < 0 ? errno : 0;
}

/* A worker dies with the spawner, also with one that died before this step. */
IN_CHILD static int step_parent(const struct launch *o)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return errno;
	if (o->role == LAUNCH_PIDNS_WORKER)
		return sandbox_spawner_alive(o->plan->fences); /* its number does not show from in here */
	return getppid() == o->plan->parent ? 0 : ESRCH;
}

IN_CHILD static int step_descriptors(const struct launch *o)
{
	int up[CHILD_EXTRA_FDS_MAX];

	if (dup2(o->plan->in, 0) < 0 || dup2(o->plan->out, 1) < 0 || dup2(o->plan->out, 2) < 0)
		return errno;
	for (size_t i = 0; i < o->plan->more_n; i++) { /* out of the way first: one may lie where another goes */
		up[i] = fcntl(o->plan->more[i], F_DUPFD, 3 + CHILD_EXTRA_FDS_MAX);
		if (up[i] < 0)
			return errno;
	}
	for (size_t i = 0; i < o->plan->more_n; i++)
		if (dup2(up[i], 3 + (int)i) < 0)
			return errno;
	return close_range(3 + (unsigned)o->plan->more_n, ~0U, 0) < 0 ? errno : 0;
}

/* The spawner ignores SIGPIPE and blocks the rest; handlers it has none. */
IN_CHILD static int step_signals(const struct launch *o)
{
	const struct sigaction preset = {.sa_handler = SIG_DFL};
	sigset_t none;

	(void)o;
	sigemptyset(&none);
	return sigaction(SIGPIPE, &preset, NULL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? errno : 0;
}

/* ---- the sandbox ---- */

IN_CHILD static int step_users(const struct launch *o)
{
	return sandbox_apply_users(o->plan->fences);
}

IN_CHILD static int step_network(const struct launch *o)
{
	return sandbox_apply_network(o->plan->fences);
}

IN_CHILD static int step_mounts(const struct launch *o)
{
	return sandbox_apply_mounts(o->plan->fences, o->plan->home, o->plan->artifact_place);
}

IN_CHILD static int step_capabilities(const struct launch *o)
{
	return sandbox_apply_capabilities(o->plan->fences, geteuid() == 0);
}

IN_CHILD static int step_privileges(const struct launch *o)
{
	return sandbox_apply_privileges(o->plan->fences);
}

IN_CHILD static int step_landlock(const struct launch *o)
{
	return sandbox_apply_landlock(o->plan->fences, o->plan->home);
}

IN_CHILD static int step_seccomp(const struct launch *o)
{
	return sandbox_apply_seccomp(o->plan->fences);
}

/* ---- the command ---- */

/* One directory of PATH; returns where the next one begins, NULL after the last. An empty one is '.'. */
IN_CHILD static const char *candidate_next(const char *dir, const char *name, char out[PATH_MAX])
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

IN_CHILD static int step_exec(const struct launch *o)
{
	const struct child_plan *p = o->plan;
	const char *dir = p->path;
	bool denied = false, slash = false;
	char candidate[PATH_MAX];
	int error;

	if (!p->argv)
		syscall(SYS_exit_group, 0); /* a trial */
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
 * In this order. What a process cannot do any more under a fence comes before that fence; a change of uid clears the
 * death signal and gives up the capabilities that mounting needs; the filter of system calls comes last.
 */
static const struct step {
	const char *name;
	int (*run)(const struct launch *o); /* 0, or an errno */
	bool by_host; /* where the worker is not the first process of its namespaces: done by the one that makes them */
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

		if (o->role == LAUNCH_ALONE || steps[i].by_host == (o->role == LAUNCH_PIDNS_HELPER))
			error = steps[i].run(o);
		if (error) {
			o->word->stage = i;
			o->word->error = error;
			return false;
		}
	}
	return true;
}

const char *child_stage_name(const struct child_report *w)
{
	static const char *const others[] = {[-STAGE_CLONE] = "clone", [-STAGE_PIDNS_INIT] = "keeper"};

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
