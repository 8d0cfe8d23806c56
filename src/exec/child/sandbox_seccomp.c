/* SPDX-License-Identifier: Apache-2.0 */
/* The table of denied system calls, compiled to seccomp filters. */
#include "exec/child/sandbox_seccomp.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/sandbox_profile.h"
#include "exec/child/in_child.h"
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define FILTER_MAX (64 << 10)

enum when { ALWAYS, HAS, EQUAL, ABOVE };
enum group { STANDARD = 1, STRICT = 2, NO_TRACE = 4, BOTH = STANDARD | STRICT };

/*
 * All other calls are allowed. Jobs are arbitrary programs, and an allow-list would break them with
 * the next release of a library. HAS: these bits of the argument are set. EQUAL: its lower 32 bits
 * are equal; the kernel ignores the upper ones of these arguments. ABOVE: all 64 bits are greater.
 */
static const struct refusal {
	const char *call;
	unsigned groups;
	int error;
	enum when when;
	unsigned arg;
	uint64_t value;
} refusals[] = {
	/* mounts, swap, files by handle */
	{"mount", BOTH, EPERM},
	{"umount2", BOTH, EPERM},
	{"pivot_root", BOTH, EPERM},
	{"move_mount", BOTH, EPERM},
	{"open_tree", BOTH, EPERM},
	{"fsopen", BOTH, EPERM},
	{"fsmount", BOTH, EPERM},
	{"fsconfig", BOTH, EPERM},
	{"fspick", BOTH, EPERM},
	{"mount_setattr", BOTH, EPERM},
	{"swapon", BOTH, EPERM},
	{"swapoff", BOTH, EPERM},
	{"acct", BOTH, EPERM},
	{"open_by_handle_at", BOTH, EPERM},
	/* kernel modules, hardware, clock */
	{"init_module", BOTH, EPERM},
	{"finit_module", BOTH, EPERM},
	{"delete_module", BOTH, EPERM},
	{"kexec_load", BOTH, EPERM},
	{"kexec_file_load", BOTH, EPERM},
	{"reboot", BOTH, EPERM},
	{"bpf", BOTH, EPERM},
	{"perf_event_open", BOTH, EPERM},
	{"iopl", BOTH, EPERM},
	{"ioperm", BOTH, EPERM},
	{"modify_ldt", BOTH, EPERM},
	{"vm86", BOTH, EPERM},
	{"settimeofday", BOTH, EPERM},
	{"clock_settime", BOTH, EPERM},
	{"stime", BOTH, EPERM},
	{"vhangup", BOTH, EPERM},
	{"lookup_dcookie", BOTH, EPERM},
	{"uselib", BOTH, EPERM},
	/* interfaces with a history of privilege escalation */
	{"add_key", BOTH, EPERM},
	{"request_key", BOTH, EPERM},
	{"keyctl", BOTH, EPERM},
	{"userfaultfd", BOTH, EPERM},
	{"io_uring_setup", BOTH, EPERM},
	{"io_uring_enter", BOTH, EPERM},
	{"io_uring_register", BOTH, EPERM},
	{"fanotify_init", BOTH, EPERM},
	{"kcmp", BOTH, EPERM},
	{"setns", BOTH, EPERM},
	/*
	 * a filter cannot read its flags, which are in memory; after ENOSYS libraries use clone()
	 */
	{"clone3", BOTH, ENOSYS},
	{"clone", STANDARD, EPERM, HAS, 0, CLONE_NEWUSER},
	{"unshare", STANDARD, EPERM, HAS, 0, CLONE_NEWUSER},
	{"ioctl", BOTH, EPERM, EQUAL, 1, TIOCSTI},
	{"ioctl", BOTH, EPERM, EQUAL, 1, TIOCLINUX},
	{"personality", STRICT, EPERM, ABOVE, 0, 0}, /* other values disable protections */
	{"unshare", STRICT, EPERM},
	{"chroot", STRICT, EPERM},
	{"clone", STRICT, EPERM, HAS, 0, CLONE_NEWUSER},
	{"clone", STRICT, EPERM, HAS, 0, CLONE_NEWNS},
	{"clone", STRICT, EPERM, HAS, 0, CLONE_NEWPID},
	{"clone", STRICT, EPERM, HAS, 0, CLONE_NEWNET},
	{"clone", STRICT, EPERM, HAS, 0, CLONE_NEWIPC},
	{"clone", STRICT, EPERM, HAS, 0, CLONE_NEWUTS},
	{"clone", STRICT, EPERM, HAS, 0, CLONE_NEWCGROUP},
	{"ptrace", STRICT, EPERM},
	{"process_vm_readv", STRICT, EPERM},
	{"process_vm_writev", STRICT, EPERM},
	{"pidfd_getfd", STRICT, EPERM},
	{"process_madvise", STRICT, EPERM},
	{"sethostname", STRICT, EPERM},
	{"setdomainname", STRICT, EPERM},
	{"socket", STRICT, EPERM, ABOVE, 0, AF_NETLINK},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_AX25},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_IPX},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_APPLETALK},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_NETROM},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_BRIDGE},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_ATMPVC},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_X25},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_ROSE},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_DECnet},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_NETBEUI},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_SECURITY},
	{"socket", STRICT, EPERM, EQUAL, 0, AF_KEY},
	/* other families reach the same protocol code as socket() */
	{"socketpair", STRICT, EPERM, ABOVE, 0, AF_UNIX},
	/* without Landlock: a job can trace only processes that it has started */
	{"ptrace", NO_TRACE, EPERM, EQUAL, 0, PTRACE_ATTACH},
	{"ptrace", NO_TRACE, EPERM, EQUAL, 0, PTRACE_SEIZE},
	{"process_vm_readv", NO_TRACE, EPERM},
	{"process_vm_writev", NO_TRACE, EPERM},
	{"pidfd_getfd", NO_TRACE, EPERM},
};

static int filter_add_refusal(scmp_filter_ctx ctx, const struct refusal *r)
{
	int nr = seccomp_syscall_resolve_name(r->call);
	struct scmp_arg_cmp cmp = {.arg = r->arg};

	if (nr < 0)
		return 0; /* this architecture has no such call, or libseccomp does not know it */
	switch (r->when) {
	case ALWAYS:
		return seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)r->error), nr, 0);
	case HAS:
		cmp.op = SCMP_CMP_MASKED_EQ;
		cmp.datum_a = r->value;
		cmp.datum_b = r->value;
		break;
	case EQUAL:
		cmp.op = SCMP_CMP_MASKED_EQ;
		cmp.datum_a = UINT32_MAX;
		cmp.datum_b = r->value;
		break;
	case ABOVE:
		cmp.op = SCMP_CMP_GT;
		cmp.datum_a = r->value;
		break;
	}
	return seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO((uint32_t)r->error), nr, 1, &cmp);
}

/* libseccomp can write a filter to a descriptor only. */
static bool filter_export(scmp_filter_ctx ctx, struct sock_fprog *ret, struct err *e)
{
	AUTO_FD fd = memfd_create("jobsched-seccomp", MFD_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0 && seccomp_export_bpf(ctx, fd) == 0 && lseek(fd, 0, SEEK_SET) == 0) {
		ret->filter = xcalloc(1, FILTER_MAX);
		n = read(fd, ret->filter, FILTER_MAX);
	}
	if (n <= 0 || n == FILTER_MAX || n % (ssize_t)sizeof(*ret->filter)) {
		free(ret->filter);
		*ret = (struct sock_fprog){};
		return err_set(e, ERR_INTERNAL, "could not build the seccomp filter");
	}
	ret->len = (unsigned short)((size_t)n / sizeof(*ret->filter));
	return true;
}

bool sandbox_seccomp_filter(int calls, bool no_trace, struct sock_fprog *ret, struct err *e)
{
	unsigned wanted = calls == CALLS_STRICT ? STRICT : STANDARD;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	bool ok = ctx && seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0;

	if (no_trace && wanted == STANDARD)
		wanted |= NO_TRACE;
	/*
	 * binary tree: the kernel evaluates the filter for every call at load time, to fill its
	 * cache
	 */
	ok = ok && seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) == 0;
	for (size_t i = 0; i < ELEMENTS(refusals) && ok; i++)
		if (refusals[i].groups & wanted)
			ok = filter_add_refusal(ctx, &refusals[i]) == 0;
	ok = ok ? filter_export(ctx, ret, e)
		: err_set(e, ERR_INTERNAL, "could not build the seccomp filter");
	seccomp_release(ctx);
	return ok;
}

IN_CHILD int sandbox_seccomp_load(const struct sock_fprog *filter)
{
	/* without this flag the kernel enables Spectre mitigations, which slow programs down */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		       filter) < 0
		? errno
		: 0;
}
