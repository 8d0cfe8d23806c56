/* SPDX-License-Identifier: Apache-2.0 */
/* Confines a child with resource limits, Landlock, a seccomp allow-list. */
#include "net/unpack/confine.h"
#include "base/auto.h"
#include "base/err.h"
#include <errno.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define MEMORY_MAX ((rlim_t)512 << 20) /* xz archives may require a dictionary of up to 4 GiB */
/* a path has up to 32 directories, which are opened one after another */
#define FILES_MAX 64

static bool limit_resources(struct err *e)
{
	static const struct {
		int what;
		rlim_t max;
	} limits[] = {
		{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, FILES_MAX},
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory exceeds any limit */
		{RLIMIT_AS, MEMORY_MAX},
#endif
	};

	for (size_t i = 0; i < ELEMENTS(limits); i++)
		if (setrlimit(limits[i].what, &(struct rlimit){limits[i].max, limits[i].max}) < 0)
			return err_errno(
				e, errno, "could not limit the process that reads the artifact");
	return true;
}

/* Landlock version 1 forbids links between directories. Without version 2 only seccomp applies. */
static bool limit_files(int tree, struct err *e)
{
	const uint64_t all = (LANDLOCK_ACCESS_FS_REFER << 1) - 1; /* every right of version 2 */
	const struct landlock_ruleset_attr attr = {.handled_access_fs = all};
	struct landlock_path_beneath_attr below = {
		.allowed_access = all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE, .parent_fd = tree};
	AUTO_FD ruleset = -1;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 2)
		return true;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0 ||
		(tree >= 0 &&
			syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &below,
				0) < 0) ||
		syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_errno(e, errno, "could not confine the process that reads the artifact");
	return true;
}

/*
 * Allows the system calls for reading an archive and writing a tree. None creates a socket or
 * process, or calls exec().
 */
static bool limit_calls(struct err *e)
{
	static const int allowed[] = {SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64),
		SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64), SCMP_SYS(lseek),
		SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(fstatfs),
		SCMP_SYS(statx), SCMP_SYS(openat), SCMP_SYS(mkdirat), SCMP_SYS(linkat),
		SCMP_SYS(symlinkat), SCMP_SYS(unlinkat), SCMP_SYS(fchmod), SCMP_SYS(ftruncate),
		SCMP_SYS(getdents64), SCMP_SYS(fcntl), SCMP_SYS(syncfs), SCMP_SYS(fsync),
		SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect),
		SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(futex), SCMP_SYS(exit),
		SCMP_SYS(exit_group), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
		SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(clock_gettime),
		SCMP_SYS(clock_nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(getrandom),
		SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(tgkill), SCMP_SYS(sched_yield),
		SCMP_SYS(sendto), SCMP_SYS(recvfrom), SCMP_SYS(sendmsg), SCMP_SYS(recvmsg),
		SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(rseq), SCMP_SYS(sysinfo),
		SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid)};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ELEMENTS(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r == 0 || err_errno(e, -r, "could not confine the process that reads the artifact");
}

bool confine_child(int tree, struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(e, errno, "could not confine the process that reads the artifact");
	return limit_resources(e) && limit_files(tree, e) && limit_calls(e);
}
