/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from a fresh child to the command; between clone and exec only system calls are made. */
#include "exec/child.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/cgroup.h"
#include "exec/clone.h"
#include "exec/user.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_SIZE (128 << 10)
#define GUARD_SIZE (64 << 10) /* of these, below: a multiple of any page size */
/* The child borrows our memory and runs on a stack the sanitizer does not know. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

struct launcher {
	char *stack;
	struct child_word *word; /* shared, so that a child with its own memory can write it too */
};

struct launch {
	const struct child_plan *plan;
	struct child_word *word;
	bool moves; /* into its control group: it could not be born there */
};

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

IN_CHILD static int step_limits(const struct launch *o)
{
	static const struct rlimit none = {0, 0};

	return setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NOFILE, &o->plan->nofile) < 0 ? errno : 0;
}

/* In a mount namespace of its own, which sees what is mounted outside later, and is not seen there. */
IN_CHILD static int step_artifact(const struct launch *o)
{
	const struct child_plan *p = o->plan;

	if (p->artifact < 0)
		return 0;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
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

IN_CHILD static bool groups_are(const struct user *u)
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
IN_CHILD static bool powerless(const struct user *u)
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
	return groups_are(u) && (u->uid == 0 || powerless(u)) ? 0 : EPERM;
}

/* Keys of ours are nobody's; a kernel without keyrings, or one that forbids them, has none to inherit. */
IN_CHILD static int step_keyring(const struct launch *o)
{
	if (!o->plan->user || syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
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
	return getppid() == o->plan->parent ? 0 : ESRCH;
}

IN_CHILD static int step_descriptors(const struct launch *o)
{
	if (dup2(o->plan->in, 0) < 0 || dup2(o->plan->out, 1) < 0 || dup2(o->plan->out, 2) < 0)
		return errno;
	return close_range(3, ~0U, 0) < 0 ? errno : 0;
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

/* One directory of PATH; returns where the next one begins, NULL after the last. An empty one is '.'. */
IN_CHILD static const char *next_candidate(const char *dir, const char *name, char out[PATH_MAX])
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

	for (const char *c = p->argv[0]; *c; c++)
		slash |= *c == '/';
	if (slash) {
		execve(p->argv[0], p->argv, p->envp);
		return errno;
	}
	while (dir) {
		dir = next_candidate(dir, p->argv[0], candidate);
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
 * In this order. Rooms for what comes later: namespaces after the limits; capabilities, no_new_privs,
 * landlock and seccomp after the parent's death signal (which a change of uid clears).
 */
static const struct step {
	const char *name;
	int (*run)(const struct launch *o); /* 0, or an errno */
} steps[] = {
	{"cgroup", step_cgroup},
	{"session", step_session},
	{"limits", step_limits},
	{"artifact", step_artifact},
	{"groups", step_groups},
	{"gid", step_gid},
	{"uid", step_uid},
	{"verify", step_verify},
	{"keyring", step_keyring},
	{"umask", step_umask},
	{"directory", step_directory},
	{"parent", step_parent},
	{"descriptors", step_descriptors},
	{"signals", step_signals},
	{"exec", step_exec},
};
#define STAGE_CLONE (-1)

IN_CHILD static int child_main(void *arg)
{
	const struct launch *o = arg;

	for (int i = 0; i < (int)ELEMENTS(steps); i++) {
		int error = steps[i].run(o);

		if (error) {
			o->word->stage = i;
			o->word->error = error;
			break;
		}
	}
	syscall(SYS_exit_group, 127);
	return 127;
}

bool launcher_new(struct launcher **ret, struct err *e)
{
	struct launcher *l = xcalloc(1, sizeof(*l));

	l->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	l->word = mmap(NULL, sizeof(*l->word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->stack == MAP_FAILED || l->word == MAP_FAILED ||
		mprotect(l->stack, GUARD_SIZE, PROT_NONE) < 0) {
		launcher_free(l);
		return err_errno(e, ENOMEM, "could not prepare for launching");
	}
	*ret = l;
	return true;
}

void launcher_free(struct launcher *l)
{
	if (!l)
		return;
	if (l->stack != MAP_FAILED)
		munmap(l->stack, STACK_SIZE);
	if (l->word != MAP_FAILED)
		munmap(l->word, sizeof(*l->word));
	free(l);
}

/* The child's number, or -errno. */
static pid_t give_birth(struct launcher *l, struct launch *o, int *pidfd)
{
	const int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD;
	pid_t pid = -ENOSYS;

	if (o->plan->cgroup && o->plan->born)
		pid = clone_into_cgroup(child_main, l->stack, STACK_SIZE, (uint64_t)flags, o, pidfd, o->plan->cgroup->dir);
	if (pid != -ENOSYS && pid != -EPERM)
		return pid;
	o->moves = o->plan->cgroup;
	pid = clone(child_main, l->stack + STACK_SIZE, flags | SIGCHLD, o, pidfd);
	return pid < 0 ? -errno : pid;
}

int child_launch(struct launcher *l, const struct child_plan *p, struct child *ret, struct child_word *ret_word)
{
	struct launch o = {.plan = p, .word = l->word};
	int pidfd = -1;
	pid_t pid;

	*l->word = (struct child_word){.stage = STAGE_CLONE};
	pid = give_birth(l, &o, &pidfd);
	if (pid < 0) {
		*ret_word = (struct child_word){.stage = STAGE_CLONE, .error = -pid};
		return pid;
	}
	*ret_word = *l->word;
	if (ret_word->error) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		close(pidfd);
		return -ret_word->error;
	}
	*ret = (struct child){.pid = pid, .pidfd = pidfd};
	return 0;
}

const char *child_stage_name(const struct child_word *w)
{
	return w->stage == STAGE_CLONE ? "clone" : steps[w->stage].name;
}

bool child_error_transient(int errnum)
{
	static const int transient[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ETXTBSY, EINTR};

	for (size_t i = 0; i < ELEMENTS(transient); i++)
		if (transient[i] == errnum)
			return true;
	return false;
}
