/* SPDX-License-Identifier: Apache-2.0 */
/* jobsched-init: the first process of a job's PID namespace. It only exists; the spawner ends it, and all others with it. */
/*
 * Whoever started it has made the kernel reap its children (SIGCHLD is ignored), blocked all signals and closed all
 * descriptors. Without a C library it is a page of code, and starting it costs a fraction of a run.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static long call(long nr, long a, long b)
{
	long result;
	register long c __asm__("rdx") = 0, d __asm__("r10") = 0, e __asm__("r8") = 0;

	__asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "r"(c), "r"(d), "r"(e) : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static long call(long nr, long a, long b)
{
	register long n __asm__("x8") = nr, result __asm__("x0") = a, second __asm__("x1") = b;
	register long c __asm__("x2") = 0, d __asm__("x3") = 0, e __asm__("x4") = 0;

	__asm__ volatile("svc 0" : "+r"(result) : "r"(n), "r"(second), "r"(c), "r"(d), "r"(e) : "memory");
	return result;
}
#else
#error "write the system call of this architecture here"
#endif

void _start(void);
__attribute__((noreturn)) void _start(void)
{
	call(SYS_prctl, PR_SET_DUMPABLE, 0);
	for (;;)
		call(SYS_ppoll, 0, 0);
}
