/* SPDX-License-Identifier: Apache-2.0 */
/* Applies namespaces, capabilities, privilege limits in the child. */
#include "exec/child/in_child.h"
#include "exec/child/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

IN_CHILD bool sandbox_path_expand(const char *path, const char *home, char out[SANDBOX_PATH_MAX])
{
	size_t n = 0;

	if (path[0] == '%') {
		for (; home && home[n] && n < SANDBOX_PATH_MAX - 1; n++)
			out[n] = home[n];
		if (n == 0 || out[0] != '/')
			return false;
		path += 2;
	}
	for (; *path && n < SANDBOX_PATH_MAX - 1; path++)
		out[n++] = *path;
	out[n] = '\0';
	return !*path;
}

IN_CHILD int sandbox_path_open(const char *path, const char *home)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	char expanded[SANDBOX_PATH_MAX];
	int base, fd;

	if (path[0] != '%') {
		fd = open(path, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (!sandbox_path_expand("%h", home, expanded))
		return -ENOENT;
	base = open(expanded, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return -errno;
	for (path += 2; *path == '/'; path++)
		;
	if (!*path)
		return base;
	fd = (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
	fd = fd < 0 ? -errno : fd;
	close(base);
	return fd;
}

IN_CHILD bool sandbox_path_absent(int error)
{
	return error == ENOENT || error == EACCES || error == ENOTDIR;
}

static IN_CHILD int proc_file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;
	size_t len = 0;

	if (fd < 0)
		return errno;
	while (text[len])
		len++;
	if (write(fd, text, len) != (ssize_t)len)
		error = errno;
	close(fd);
	return error;
}

IN_CHILD int sandbox_apply_users(const struct sandbox_prepared *f)
{
	int error;

	if (!(f->namespaces & CLONE_NEWUSER))
		return 0;
	error = proc_file_write("/proc/self/setgroups", "deny");
	if (!error)
		error = proc_file_write("/proc/self/uid_map", f->all->uid_map);
	return error ? error : proc_file_write("/proc/self/gid_map", f->all->gid_map);
}

static IN_CHILD int loopback_up(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;

	if (fd < 0)
		return errno;
	if (ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		error = errno;
	close(fd);
	return error;
}

IN_CHILD int sandbox_apply_network(const struct sandbox_prepared *f)
{
	if (f->profile.part[SANDBOX_NETWORK] == NETWORK_LOOPBACK)
		return loopback_up();
	if (f->profile.part[SANDBOX_NETWORK] == NETWORK_NONE && !(f->namespaces & CLONE_NEWNET))
		return setns(f->all->network, CLONE_NEWNET) < 0 ? errno : 0;
	return 0;
}

static IN_CHILD int capabilities_drop_held(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return errno;
	return syscall(SYS_capset, &head, none) < 0 ? errno : 0;
}

/*
 * Capabilities that a later exec() could regain. The list ends with the first number that the
 * kernel does not know.
 */
static IN_CHILD int capabilities_drop_bounding(uint64_t keep)
{
	for (unsigned long c = 0; c < 64; c++) {
		if (c < SANDBOX_CAPABILITIES && keep & (UINT64_C(1) << c))
			continue;
		if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
			return errno == EINVAL && c > CAP_SETFCAP ? 0 : errno;
	}
	return 0;
}

/*
 * A job of root loses the bounding set except the capabilities of the profile, because exec() gives
 * root all of that set. If the profile keeps none, uid 0 loses its special meaning (SECBIT_NOROOT).
 * Other users have no capabilities since the change of uid, and no_new_privs prevents that they
 * regain any.
 */
IN_CHILD int sandbox_apply_capabilities(const struct sandbox_prepared *f, bool root)
{
	const unsigned long no_root = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
		SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	if (f->profile.capabilities == SANDBOX_CAPS_ALL && !(f->namespaces & CLONE_NEWUSER))
		return 0;
	if (f->namespaces & CLONE_NEWUSER)
		return prctl(PR_SET_SECUREBITS, no_root) < 0 ? errno : capabilities_drop_held();
	if (!root)
		return capabilities_drop_held();
	if (f->profile.capabilities == 0)
		return prctl(PR_SET_SECUREBITS, no_root) < 0 ? errno : capabilities_drop_held();
	return capabilities_drop_bounding(f->profile.capabilities);
}

IN_CHILD int sandbox_apply_privileges(const struct sandbox_prepared *f)
{
	if (!f->profile.part[SANDBOX_PRIVILEGES])
		return 0;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? errno : 0;
}

IN_CHILD int sandbox_apply_seccomp(const struct sandbox_prepared *f)
{
	return f->filter ? sandbox_seccomp_load(f->filter) : 0;
}

/* Inside a PID namespace getppid() is 0, whether or not the spawner is alive. */
IN_CHILD int sandbox_spawner_alive(const struct sandbox_prepared *f)
{
	struct pollfd p = {.fd = f->all->self, .events = POLLIN};

	if (p.fd < 0)
		return ENOSYS;
	return poll(&p, 1, 0) == 0 ? 0 : ESRCH;
}

/*
 * The first process of a PID namespace. The kernel kills the other processes when it exits, and
 * reaps its children because it ignores SIGCHLD. It runs in the namespaces of the job, without
 * capabilities and without secrets in its memory, so a job gains nothing by tracing it.
 */
IN_CHILD int sandbox_exec_init(const struct sandbox_prepared *f, char *const envp[])
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	static char *const argv[] = {(char *)"jobsched-init", NULL};
	int error = setsid() < 0 ? errno : 0;

	if (!error)
		error = sandbox_apply_proc(f);
	if (!error)
		error = sandbox_apply_capabilities(f, true);
	if (!error &&
		(prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sigaction(SIGCHLD, &ignore, NULL) < 0 ||
			close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) < 0))
		error = errno;
	if (!error)
		error = sandbox_spawner_alive(f);
	if (error)
		return error;
	syscall(SYS_execveat, f->all->init, "", argv, envp, AT_EMPTY_PATH);
	return errno;
}
