/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts a job with Landlock. */
#include "exec/child/sandbox_landlock.h"
#include "exec/child/in_child.h"
#include "exec/child/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not defined by older kernel headers. */
#define FS_TRUNCATE (UINT64_C(1) << 14)
#define FS_IOCTL_DEV (UINT64_C(1) << 15)
#define SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)
struct ruleset_attr {
	uint64_t fs, net, scoped;
};

#define FS_WRITE_1                                                                 \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |           \
		LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |    \
		LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |        \
		LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |      \
		LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define FS_USE_DEVICES (LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

int sandbox_landlock_version(void)
{
	int v = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return v >= 2 ? v : 0; /* version 1 forbids every rename between directories */
}

static IN_CHILD uint64_t fs_rights(int version)
{
	return FS_WRITE_1 | LANDLOCK_ACCESS_FS_REFER | (version >= 3 ? FS_TRUNCATE : 0) |
		(version >= 5 ? FS_IOCTL_DEV : 0);
}

static IN_CHILD int ruleset_new(uint64_t fs, uint64_t scoped, int version)
{
	const struct ruleset_attr a = {.fs = fs, .scoped = scoped};

	return (int)syscall(
		SYS_landlock_create_ruleset, &a, version >= 6 ? sizeof(a) : sizeof(a.fs), 0);
}

/* A path that does not exist, or that the owner cannot reach, is skipped. */
static IN_CHILD int ruleset_allow(int ruleset, const char *path, const char *home, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access};
	int error = 0;

	rule.parent_fd = sandbox_path_open(path, home);
	if (rule.parent_fd < 0)
		return sandbox_path_absent(-rule.parent_fd) ? 0 : -rule.parent_fd;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		error = errno;
	close(rule.parent_fd);
	return error;
}

/*
 * A process in a Landlock domain cannot trace processes outside of it, so the ruleset handles
 * hardly any right. Renames between directories are always forbidden in a domain unless a rule
 * allows them.
 */
int sandbox_landlock_processes(int version)
{
	const uint64_t fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_REFER;
	int ruleset = version ? ruleset_new(fs, 0, version) : -1;

	if (ruleset >= 0 && ruleset_allow(ruleset, "/", NULL, fs)) {
		close(ruleset);
		return -1;
	}
	return ruleset;
}

/* 'state' is the directory that the attempts of the run share; -1: none. */
static IN_CHILD int ruleset_allow_paths(
	const struct sandbox_prepared *f, const char *home, int state, int ruleset)
{
	static const char *const temporary[] = {"/tmp", "/var/tmp", "/dev/shm"};
	const uint64_t all = fs_rights(f->all->landlock);
	const struct strv *paths = &f->profile.read_write;
	int error = ruleset_allow(ruleset, "/dev", NULL, FS_USE_DEVICES & all);

	for (size_t i = 0; i < ELEMENTS(temporary) && !error; i++)
		error = ruleset_allow(ruleset, temporary[i], NULL, all);
	for (size_t i = 0; i < paths->n && !error; i++)
		error = ruleset_allow(ruleset, paths->v[i], home, all);
	if (!error && state >= 0 &&
		syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
			&(struct landlock_path_beneath_attr){.allowed_access = all, .parent_fd = state}, 0) < 0)
		error = errno;
	return error;
}

IN_CHILD int sandbox_apply_landlock(const struct sandbox_prepared *f, const char *home, int state)
{
	int version = f->all->landlock, ruleset, error = 0;

	if (f->profile.part[SANDBOX_LANDLOCK] == LANDLOCK_NONE ||
		(f->profile.part[SANDBOX_LANDLOCK] == LANDLOCK_PROCESSES && f->all->ruleset < 0))
		return 0; /* without Landlock the seccomp filter denies tracing */
	if (f->profile.part[SANDBOX_LANDLOCK] == LANDLOCK_PROCESSES)
		return syscall(SYS_landlock_restrict_self, f->all->ruleset, 0) < 0 ? errno : 0;
	ruleset = ruleset_new(fs_rights(version),
		version >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0, version);
	if (ruleset < 0)
		return errno;
	error = ruleset_allow_paths(f, home, state, ruleset);
	if (!error && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		error = errno;
	close(ruleset);
	return error;
}
