/* SPDX-License-Identifier: Apache-2.0 */
/* Measures runs of 'true' per second, bare and through the spawner, while N other workers sleep. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "core/start/start_plan.h"
#include "exec/proto/spawn_client.h"
#include "bench/measure.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define IN_FLIGHT 8
#define ROUNDS 6
#define ROUND (2 * USEC_SEC)

static void die(const char *what, const struct err *e)
{
	fprintf(stderr, "bench_spawn: %s: %s\n", what, e ? e->msg : strerror(errno));
	exit(1);
}

struct through {
	struct spawn_client *client;
	sd_event *ev;
	struct start_plan plan;
	usec_t until;
	int flying, done;
	int sleepers; /* still to be started */
};

static void start_one(struct through *t)
{
	struct err e = {};

	t->plan.run++;
	if (!spawn_client_start(t->client, &t->plan, &e))
		die("start", &e);
	t->flying++;
}

static void on_report(const struct spawn_report *r, void *arg)
{
	struct through *t = arg;

	if (r->kind == SPAWN_STARTED && t->sleepers && --t->sleepers == 0)
		sd_event_exit(t->ev, 0);
	if (r->kind == SPAWN_STARTED)
		return;
	if (r->kind != SPAWN_ENDED || r->outcome != ATTEMPT_SUCCEEDED)
		die(r->error ? r->error : "a run failed", &(struct err){.msg = "see spawner.log"});
	spawn_client_ack(t->client, r->run, r->fence);
	t->flying--;
	t->done++;
	if (clock_boot(&clock_system) < t->until)
		start_one(t);
	else if (!t->flying)
		sd_event_exit(t->ev, 0);
}

static double through_round(struct through *t, const char *sock)
{
	struct err e = {};
	usec_t from;

	if (sd_event_new(&t->ev) < 0 || !spawn_client_open(t->ev, sock, "bench", on_report, t, &t->client, &e))
		die("open", &e);
	t->done = 0;
	from = clock_boot(&clock_system);
	t->until = from + ROUND;
	for (int i = 0; i < IN_FLIGHT; i++)
		start_one(t);
	sd_event_loop(t->ev);
	spawn_client_free(t->client);
	t->ev = sd_event_unref(t->ev);
	return (double)t->done * USEC_SEC / (double)(clock_boot(&clock_system) - from);
}

/* Starts sleeping workers. The cost of a run should not depend on their number. */
static void start_sleepers(struct through *t, const char *sock, int n)
{
	struct start_plan p = {.fence = 1, .attempt = 1, .run = INT32_MAX};
	struct err e = {};

	exec_spec_init(&p.spec);
	p.spec.uid = geteuid();
	p.spec.owner = xstrdup("bench");
	p.spec.cwd = xstrdup("/");
	strv_add(&p.spec.argv, "/bin/sleep");
	strv_add(&p.spec.argv, "3600");
	if (sd_event_new(&t->ev) < 0 || !spawn_client_open(t->ev, sock, "bench", on_report, t, &t->client, &e))
		die("open", &e);
	t->sleepers = n;
	for (; n > 0; n--, p.run++)
		if (!spawn_client_start(t->client, &p, &e))
			die("start", &e);
	if (t->sleepers)
		sd_event_loop(t->ev);
	spawn_client_free(t->client);
	t->ev = sd_event_unref(t->ev);
	start_plan_done(&p);
}

static pid_t spawner_start(const char *program, const char *dir, const char *sock)
{
	AUTO_TEXT output = xprintf("%s/output", dir);
	char *argv[] = {(char *)program, (char *)"--runtime-dir", (char *)dir, (char *)"--output-dir", output, NULL};
	pid_t pid;

	if (posix_spawn(&pid, program, NULL, NULL, argv, environ))
		die(program, NULL);
	for (int i = 0; i < 500 && access(sock, F_OK) < 0; i++)
		usleep(10000);
	return pid;
}

int main(int argc, char **argv)
{
	const char *build = getenv("top_builddir");
	char dir[] = "/tmp/bench-spawn.XXXXXX";
	AUTO_TEXT program = xprintf("%s/jobsched-spawner", build ? build : ".");
	AUTO_TEXT sock = NULL;
	AUTO_TEXT clean = NULL;
	struct through t = {.plan = {.fence = 1, .attempt = 1, .output_limit = 1 << 20}};
	int sleepers = argc > 1 ? atoi(argv[1]) : 0; /* the next argument is a sandbox profile */
	double bare = 0, through = 0, before, bare_cpu = 0, through_cpu = 0, bare_runs = 0;
	pid_t spawner;

	if (!mkdtemp(dir))
		die("mkdtemp", NULL);
	sock = xprintf("%s/spawner.sock", dir);
	spawner = spawner_start(program, dir, sock);
	exec_spec_init(&t.plan.spec);
	t.plan.spec.uid = geteuid();
	t.plan.spec.owner = xstrdup("bench");
	strv_add(&t.plan.spec.argv, "/bin/true");
	strv_add(&t.plan.vars, "JOBSCHED_JOB=1");
	t.plan.spec.sandbox = xstrdup(argc > 2 ? argv[2] : NULL);
	start_sleepers(&t, sock, sleepers);
	before = bench_cpu(spawner);
	for (int i = 0; i < ROUNDS; i++) { /* interleaved, because the load of the machine changes */
		double rate, from = bench_cpu_tree(getpid());

		rate = limit_spawn(IN_FLIGHT, (double)ROUND / USEC_SEC);
		bare += rate / ROUNDS;
		bare_runs += rate * (double)ROUND / USEC_SEC;
		bare_cpu += bench_cpu_tree(getpid()) - from;
		from = bench_cpu_tree(getpid()) + bench_cpu_tree(spawner);
		through += through_round(&t, sock) / ROUNDS;
		through_cpu += bench_cpu_tree(getpid()) + bench_cpu_tree(spawner) - from;
	}
	printf("bare posix_spawn and wait, %d in flight: %7.0f /s\n", IN_FLIGHT, bare);
	printf("through the spawner, %d in flight:       %7.0f /s\n", IN_FLIGHT, through);
	printf("ratio:                                  %7.2f\n", through / bare);
	printf("CPU per run, all processes: bare %.0f us, through the spawner %.0f us, ratio %.2f\n",
		bare_cpu * 1e6 / bare_runs, through_cpu * 1e6 / (double)t.plan.run,
		bare_cpu / bare_runs / (through_cpu / (double)t.plan.run));
	printf("spawner's own time per run, vfork included, %d sleeping workers: %.0f us\n", sleepers,
		(bench_cpu(spawner) - before) * 1e6 / (double)t.plan.run);
	start_plan_done(&t.plan);
	kill(spawner, SIGTERM);
	waitpid(spawner, NULL, 0);
	clean = xprintf("rm -rf '%s'", dir);
	return system(clean) ? 1 : 0;
}
