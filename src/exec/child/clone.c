/* SPDX-License-Identifier: Apache-2.0 */
/* Calls clone3(), which the C library does not offer. The child needs its own stack. */
#include "exec/child/clone.h"
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * In the child the result of the call is 0 and the stack pointer is the top of its stack; it calls
 * fn(arg), which does not return.
 */
static long clone3_call(struct clone_args *args, int (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
	register int (*f)(void *) __asm__("r12") = fn;
	register void *a __asm__("r13") = arg;
	long result = SYS_clone3;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "hlt\n"
			 "1:"
			 : "+a"(result)
			 : "D"(args), "S"(sizeof(*args)), "r"(f), "r"(a)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long result __asm__("x0") = (long)args;
	register long size __asm__("x1") = (long)sizeof(*args);
	register int (*f)(void *) __asm__("x9") = fn;
	register void *a __asm__("x10") = arg;
	register long number __asm__("x8") = SYS_clone3;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, #0\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(result)
			 : "r"(size), "r"(f), "r"(a), "r"(number)
			 : "x30", "memory");
	return result;
#else
	(void)args;
	(void)fn;
	(void)arg;
	return -ENOSYS;
#endif
}

pid_t clone_into_cgroup(int (*fn)(void *), void *stack, size_t stack_size, uint64_t flags,
	void *arg, pid_t *tid, int cgroup)
{
	struct clone_args args = {.flags = flags | CLONE_INTO_CGROUP,
		/* CLONE_PARENT: that of the caller */
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD,
		.parent_tid = (uint64_t)(uintptr_t)tid,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = stack_size,
		.cgroup = (uint64_t)cgroup};

	return (pid_t)clone3_call(&args, fn, arg);
}

pid_t clone_fork_into_cgroup(int cgroup)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)cgroup};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	return pid < 0 ? -errno : (pid_t)pid;
}
