/* SPDX-License-Identifier: Apache-2.0 */
/* The jobsched-init program: first process of a PID namespace, waits until it is killed. */
/*
 * When it exits, the kernel kills all other processes of the namespace. It inherits an ignored
 * SIGCHLD, so that the kernel reaps its children, blocked signals, and no open descriptors. It does
 * not use the C library, so it has a single page of code and starts faster.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

static long call(long nr, long a, long b)
{
#if defined(__x86_64__)
	long result;
	register long c __asm__("rdx") = 0, d __asm__("r10") = 0, e __asm__("r8") = 0;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "r"(c), "r"(d), "r"(e)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long n __asm__("x8") = nr, result __asm__("x0") = a, second __asm__("x1") = b;
	register long c __asm__("x2") = 0, d __asm__("x3") = 0, e __asm__("x4") = 0;

	__asm__ volatile("svc 0"
			 : "+r"(result)
			 : "r"(n), "r"(second), "r"(c), "r"(d), "r"(e)
			 : "memory");
	return result;
#else
#error "add the system call of this architecture"
#endif
}

void _start(void);
__attribute__((noreturn)) void _start(void)
{
	call(SYS_prctl, PR_SET_DUMPABLE, 0);
	for (;;)
		call(SYS_ppoll, 0, 0);
}
