/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of each part of a sandbox for a run of 'true', in microseconds of CPU time. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/child/child.h"
#include "exec/child/launch.h"
#include "exec/child/sandbox.h"
#include "exec/child/user.h"
#include "exec/worker/cgroup.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 15
#define RUNS_PER_ROUND 40

struct row {
	const char *name;
	struct sandbox profile;
	bool as_nobody, in_group;
	struct sandbox_set *made; /* NULL: without a sandbox */
	double cpu[ROUNDS], wall[ROUNDS];
};

static struct row rows[] = {
	{"bare posix_spawn", {}},
	{"our steps, no sandbox", {.capabilities = SANDBOX_CAPS_ALL}},
	{"user and groups changed", {.capabilities = SANDBOX_CAPS_ALL}, .as_nobody = true},
	{"control group, created in it", {.capabilities = SANDBOX_CAPS_ALL}, .in_group = true},
	{"no_new_privs", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_PRIVILEGES] = 1}}},
	{"seccomp, standard", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_PRIVILEGES] = 1, [SANDBOX_CALLS] = CALLS_STANDARD}}},
	{"seccomp, strict", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_PRIVILEGES] = 1, [SANDBOX_CALLS] = CALLS_STRICT}}},
	{"landlock, processes",
		{.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_PRIVILEGES] = 1, [SANDBOX_LANDLOCK] = LANDLOCK_PROCESSES}}},
	{"landlock, paths",
		{.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_PRIVILEGES] = 1, [SANDBOX_LANDLOCK] = LANDLOCK_PATHS}}},
	{"capabilities dropped", {.capabilities = 0}},
	{"IPC namespace", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_IPC] = 1}}},
	{"network namespace, joined", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_NETWORK] = NETWORK_NONE}}},
	{"network namespace, new", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_NETWORK] = NETWORK_LOOPBACK}}},
	{"mount namespace, read-only", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_SYSTEM] = 1}}},
	{"mount namespace, own /tmp", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_TMP] = 1}}},
	{"mount namespace, own /dev", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_DEV] = 1}}},
	{"mount namespace, empty /run", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_RUN] = 1}}},
	{"PID namespace, init process, /proc", {.capabilities = SANDBOX_CAPS_ALL, .part = {[SANDBOX_PIDS] = 1}}},
	{"all of 'standard'", {.name = (char *)"standard"}},
	{"all of 'strict'", {.name = (char *)"strict"}},
};

static struct cgroups groups = {.root = -1};
static char *const argv_true[] = {(char *)"/bin/true", NULL};
static char *const no_env[] = {NULL};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_sandbox: %s: %s\n", what, why);
	exit(1);
}

static double cpu_now(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1e6 +
	       (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec + children.ru_stime.tv_usec);
}

static void run_bare(void)
{
	pid_t pid;

	if (posix_spawn(&pid, argv_true[0], NULL, NULL, argv_true, no_env))
		die("posix_spawn", strerror(errno));
	waitpid(pid, NULL, 0);
}

static void run_one(const struct row *r, struct launch_stacks *l, int null)
{
	static const struct user nobody = {.uid = 65534, .gid = 65534, .groups_n = 1, .groups = {65534}};
	static const struct child_limits limits = {.v = {{RLIMIT_CORE, {0, 0}}, {RLIMIT_NOFILE, {1024, 4096}}}, .n = 2};
	struct cgroup group = {.dir = -1, .events.fd = -1};
	const struct child_plan p = {.user = r->as_nobody ? &nobody : NULL, .cgroup = r->in_group ? &group.dir : NULL,
		.cgroup_clone = r->in_group && groups.can_clone_into, .argv = argv_true, .envp = no_env, .cwd = "/", .in = null, .out = null, .umask = 022,
		.limits = &limits, .parent = getpid(), .sandbox = &r->made->v[0]};
	struct child_report word;
	struct child child;

	if (r->in_group && cgroup_acquire(&groups, 0, &(struct cgroup_limits){}, &group) < 0)
		die("cgroup", "could not be made");
	if (launch_child(l, &p, &child, &word) < 0)
		die(child_stage_name(&word), strerror(word.error));
	launch_child_reap(&child);
	cgroup_release(&groups, &group);
}

static void prepare(struct row *r, struct launch_stacks *l, const char *init)
{
	AUTO_DONE(sandbox_profiles) ours = {};
	struct sandbox_profiles one = {&r->profile, 1};
	struct err e = {};

	sandbox_profiles_init(&ours);
	if (r->profile.name)
		one.v = sandbox_profiles_find(&ours, r->profile.name);
	if (!sandbox_set_open(&r->made, &one, false, init, l, &e))
		die(r->name, e.msg);
	if (!r->made->v[0].usable)
		printf("%-36s not supported: %s\n", r->name, r->made->v[0].missing);
}

/* The minimum, because other load only adds time. A value of 0 means that the round was not run. */
static double least(const double *v)
{
	double min = v[0];

	for (int i = 1; i < ROUNDS; i++)
		min = v[i] < min ? v[i] : min;
	return min;
}

static void measure(struct row *r, int round, struct launch_stacks *l, int null)
{
	double cpu = cpu_now();
	usec_t wall = clock_boot(&clock_system);

	for (int i = 0; i < RUNS_PER_ROUND; i++) {
		if (r->made)
			run_one(r, l, null);
		else
			run_bare();
	}
	r->cpu[round] = (cpu_now() - cpu) / RUNS_PER_ROUND;
	r->wall[round] = (double)(clock_boot(&clock_system) - wall) / RUNS_PER_ROUND;
}

int main(int argc, char **argv)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT init = xprintf("%s/jobsched-init", build ? build : ".");
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct launch_stacks *l;
	struct err e = {};
	double bare, steps;

	if (!launch_stacks_new(&l, &e))
		die("launcher", e.msg);
	cgroups_open(&groups, argc > 1 ? argv[1] : "auto", "bench", &e); /* a cgroup2 directory; without one that row is empty */
	for (size_t i = 1; i < ELEMENTS(rows); i++)
		prepare(&rows[i], l, init);
	for (int round = 0; round < ROUNDS; round++) /* interleaved, because the load of the machine changes */
		for (size_t i = 0; i < ELEMENTS(rows); i++)
			if ((!rows[i].made || rows[i].made->v[0].usable) && (!rows[i].in_group || cgroups_enabled(&groups)))
				measure(&rows[i], round, l, null);
	bare = least(rows[0].cpu);
	steps = least(rows[1].cpu);
	printf("%-36s %9s %9s %9s %7s\n", "one run of true, least of 15 rounds", "CPU us", "wall us", "added us", "ratio");
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		double cpu = least(rows[i].cpu);

		if (cpu > 0)
			printf("%-36s %9.0f %9.0f %9.0f %7.2f\n", rows[i].name, cpu, least(rows[i].wall), cpu - (i > 1 ? steps : bare), bare / cpu);
		sandbox_set_free(rows[i].made);
	}
	launch_stacks_free(l);
	cgroups_done(&groups);
	return 0;
}
