/* SPDX-License-Identifier: Apache-2.0 */
/* A job that attempts to escape from its sandbox in many ways. */
/*
 * usage: breakout DIR PID PORT KEY
 * DIR is a directory of its user, PID a process of that user outside of the sandbox, PORT a listening TCP port of 127.0.0.1, which
 * is also part of the names of Unix sockets, KEY the key of a shared memory segment. Each attempt prints one line with its name and
 * the result: out, stopped or skipped. A successful attempt does not change the system.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUT, STOPPED, SKIPPED };

static const char *dir, *port, *key;
static pid_t outside;

static int out_if(bool reached)
{
	return reached ? OUT : STOPPED;
}

/* The arguments are invalid. Any error except EPERM shows that the call was allowed. */
static int reached(long result)
{
	if (result < 0 && errno == ENOSYS)
		return SKIPPED;
	return out_if(result >= 0 || errno != EPERM);
}

/* ---- files ---- */

/* Creates a file without a name, so that no file is left behind. */
static int can_write_to(const char *where)
{
	int fd = open(where, O_TMPFILE | O_WRONLY, 0600);

	return fd < 0 && errno == EOPNOTSUPP ? SKIPPED : out_if(fd >= 0);
}

static int write_usr(void)
{
	return can_write_to("/usr");
}

static int write_etc(void)
{
	return can_write_to("/etc");
}

static int write_own(void)
{
	return can_write_to(dir);
}

static int change_mode(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/file", dir);
	return out_if(chmod(path, 0640) == 0);
}

static int see_tmp(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "/tmp/%s", key);
	return out_if(access(path, F_OK) == 0);
}

static int write_settings(void)
{
	return out_if(open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0); /* opened only */
}

static int see_devices(void)
{
	return out_if(access("/dev/ptmx", F_OK) == 0);
}

static int make_device(void)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/tmp/breakout.%d", (int)getpid());
	r = mknod(path, S_IFCHR | 0600, makedev(1, 3));
	unlink(path);
	return out_if(r == 0);
}

static int change_root(void)
{
	return out_if(chroot("/tmp") == 0);
}

static int mount_tmpfs(void)
{
	char path[4096];
	int r;

	snprintf(path, sizeof(path), "%s/mount", dir);
	r = mount("none", path, "tmpfs", 0, NULL);
	if (r == 0)
		umount(path);
	return out_if(r == 0);
}

static int new_mount_api(void)
{
	return out_if(syscall(SYS_fsopen, "tmpfs", 0) >= 0);
}

static int run_setuid_program(void)
{
	char path[4096];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/whoami", dir);
	if (geteuid() == 0)
		return SKIPPED;
	pid = fork();
	if (pid == 0) {
		execl(path, path, "--euid", NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	return out_if(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- processes ---- */

static int see_process(void)
{
	return out_if(kill(outside, 0) == 0);
}

static int signal_process(void)
{
	return out_if(kill(outside, SIGCONT) == 0);
}

static int trace_process(void)
{
	if (ptrace(PTRACE_ATTACH, outside, NULL, NULL) < 0)
		return STOPPED;
	waitpid(outside, NULL, __WALL);
	ptrace(PTRACE_DETACH, outside, NULL, NULL);
	return OUT;
}

static int read_environment(void)
{
	char path[64], c;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)outside);
	fd = open(path, O_RDONLY);
	return out_if(fd >= 0 && read(fd, &c, 1) == 1);
}

static int read_memory(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)outside);
	return out_if(open(path, O_RDONLY) >= 0);
}

static int take_descriptor(void)
{
	long pidfd = syscall(SYS_pidfd_open, outside, 0);

	return out_if(pidfd >= 0 && syscall(SYS_pidfd_getfd, pidfd, 0, 0) >= 0);
}

static int join_namespaces(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)outside);
	fd = open(path, O_RDONLY);
	return out_if(fd >= 0 && setns(fd, CLONE_NEWNS) == 0);
}

static int unshare_users(void)
{
	return out_if(unshare(CLONE_NEWUSER) == 0);
}

static int clone_users(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return out_if(pid > 0);
}

static int clone3_users(void)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return out_if(pid > 0);
}

static int shared_memory(void)
{
	return out_if(shmget((key_t)strtol(key, NULL, 10), 0, 0) >= 0);
}

/* ---- the kernel ---- */

static int load_module(void)
{
	return reached(syscall(SYS_delete_module, "no_such_module_of_jobsched", 0));
}

static int load_kernel(void)
{
	return reached(syscall(SYS_kexec_load, 0, 0, NULL, 0xdead));
}

static int load_bpf(void)
{
	return reached(syscall(SYS_bpf, 9999, NULL, 0));
}

static int count_events(void)
{
	return reached(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
}

static int use_keyring(void)
{
	return out_if(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) >= 0);
}

static int use_io_uring(void)
{
	char params[128] = {};

	return reached(syscall(SYS_io_uring_setup, 1, params));
}

static int handle_faults(void)
{
	return reached(syscall(SYS_userfaultfd, 0x12345678));
}

static int set_clock(void)
{
	return reached(syscall(SYS_clock_settime, 9999, NULL));
}

static int call_reboot(void)
{
	return reached(syscall(SYS_reboot, 1, 2, 3, NULL)); /* invalid magic numbers */
}

static int change_personality(void)
{
	return out_if(syscall(SYS_personality, 0x0400000) >= 0); /* READ_IMPLIES_EXEC */
}

#ifdef __x86_64__
static int call_as_i386(void)
{
	long result = 20; /* getpid on i386 */

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory");
	return out_if(result == getpid());
}

static int call_as_x32(void)
{
	long result = syscall(0x40000000 | SYS_getpid);

	return result < 0 && errno == ENOSYS ? SKIPPED : out_if(result == getpid());
}
#endif

/* ---- the network ---- */

static int connect_tcp(void)
{
	const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return out_if(fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0);
}

static int connect_abstract(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "jobsched-%s", port);

	return out_if(fd >= 0 && connect(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0);
}

static int connect_service(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "/run/jobsched-%s", port);
	return out_if(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
}

static int raw_socket(void)
{
	return out_if(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0);
}

static int packet_socket(void)
{
	return out_if(socket(AF_PACKET, SOCK_RAW, 0) >= 0);
}

static int unusual_socket(void)
{
	int fd = socket(AF_ALG, SOCK_SEQPACKET, 0);

	return fd < 0 && errno == EAFNOSUPPORT ? SKIPPED : out_if(fd >= 0);
}

/* TCP has no socket pairs: EOPNOTSUPP comes from the protocol, EPERM from the seccomp filter. */
static int unusual_socketpair(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return SKIPPED;
	return out_if(socketpair(AF_INET, SOCK_STREAM, 0, pair) == 0 || errno != EPERM);
}

static const struct {
	const char *name;
	int (*try)(void);
} attempts[] = {
	{"write-usr", write_usr},
	{"write-etc", write_etc},
	{"write-own", write_own},
	{"change-mode", change_mode},
	{"see-tmp", see_tmp},
	{"write-settings", write_settings},
	{"see-devices", see_devices},
	{"make-device", make_device},
	{"chroot", change_root},
	{"mount", mount_tmpfs},
	{"fsopen", new_mount_api},
	{"setuid-program", run_setuid_program},
	{"see-process", see_process},
	{"signal-process", signal_process},
	{"trace-process", trace_process},
	{"read-environment", read_environment},
	{"read-memory", read_memory},
	{"take-descriptor", take_descriptor},
	{"join-namespaces", join_namespaces},
	{"unshare-users", unshare_users},
	{"clone-users", clone_users},
	{"clone3-users", clone3_users},
	{"shared-memory", shared_memory},
	{"module", load_module},
	{"kexec", load_kernel},
	{"bpf", load_bpf},
	{"perf", count_events},
	{"keyring", use_keyring},
	{"io-uring", use_io_uring},
	{"userfaultfd", handle_faults},
	{"clock", set_clock},
	{"reboot", call_reboot},
	{"personality", change_personality},
#ifdef __x86_64__
	{"i386", call_as_i386},
	{"x32", call_as_x32},
#endif
	{"connect-tcp", connect_tcp},
	{"connect-abstract", connect_abstract},
	{"connect-service", connect_service},
	{"raw-socket", raw_socket},
	{"packet-socket", packet_socket},
	{"unusual-socket", unusual_socket},
	{"unusual-socketpair", unusual_socketpair},
};

/* Each attempt runs in its own process, because some kill it. */
static void attempt(size_t i)
{
	static const char *const words[] = {"out", "stopped", "skipped"};
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(attempts[i].try());
	waitpid(pid, &status, 0);
	if (WIFEXITED(status))
		printf("%s %s\n", attempts[i].name, words[WEXITSTATUS(status) % 3]);
	else /* another signal: the kernel does not support the call */
		printf("%s %s\n", attempts[i].name, WTERMSIG(status) == SIGSYS ? "stopped" : "skipped");
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--euid") == 0)
		return geteuid() == 0 ? 0 : 1;
#ifdef __x86_64__
	if (argc == 2 && strcmp(argv[1], "--i386") == 0)
		return call_as_i386();
#endif
	if (argc != 5)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	dir = argv[1];
	outside = (pid_t)atoi(argv[2]);
	port = argv[3];
	key = argv[4];
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		attempt(i);
	return 0;
}
