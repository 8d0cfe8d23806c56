/* SPDX-License-Identifier: Apache-2.0 */
/* Measures time, CPU and bare process starts. */
#include "bench/measure.h"
#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* User and system time of a process, then of the children it has waited for, in ticks. */
static void read_times(pid_t pid, unsigned long t[4])
{
	char path[64], text[1024], *p;
	ssize_t n;
	int fd;

	memset(t, 0, 4 * sizeof(*t));
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &t[0], &t[1], &t[2],
			  &t[3]) != 4)
		memset(t, 0, 4 * sizeof(*t));
}

double bench_cpu(pid_t pid)
{
	unsigned long t[4];

	read_times(pid, t);
	return (double)(t[0] + t[1]) / (double)sysconf(_SC_CLK_TCK);
}

/* The CPU ticks of running children. The launchers of a spawner do not end during a measurement. */
static unsigned long ticks_of_children(pid_t pid)
{
	unsigned long t[4], sum = 0;
	char path[64];
	FILE *f;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1) {
		read_times(child, t);
		sum += t[0] + t[1];
	}
	if (f)
		fclose(f);
	return sum;
}

double bench_cpu_tree(pid_t pid)
{
	unsigned long t[4];

	read_times(pid, t);
	return (double)(t[0] + t[1] + t[2] + t[3] + ticks_of_children(pid)) / (double)sysconf(_SC_CLK_TCK);
}

static void start_true(void)
{
	char *argv[] = {(char *)"true", NULL}, *env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
	pid_t pid;
	int r = posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env);

	if (r)
		errx(1, "posix_spawn: %s", strerror(r));
}

double limit_spawn(int in_flight, double seconds)
{
	double start = bench_now();
	int ended = 0;

	for (int i = 0; i < in_flight; i++)
		start_true();
	while (bench_now() - start < seconds) {
		if (wait(NULL) < 0)
			err(1, "wait");
		ended++;
		start_true();
	}
	for (int i = 0; i < in_flight; i++, ended++)
		if (wait(NULL) < 0)
			err(1, "wait");
	return ended / (bench_now() - start);
}
