/* SPDX-License-Identifier: Apache-2.0 */
/* Measures submissions and runs of a real daemon, and the limits of this machine for comparison. */
#include "base/err.h"
#include "bench/measure.h"
#include "wire/http_client.h"
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 64
#define IN_FLIGHT 8
#define BULK 1000

extern char **environ;

/* A daemon in a temporary directory. */
struct bench {
	char dir[64], socket[128];
	pid_t pid, spawner;  /* the daemon; a spawner of 0 is not known yet */
	uid_t owner;         /* submits the jobs that run */
	const char *sandbox; /* of these jobs; NULL: the default */
	double seconds;      /* of each measurement */
	int runs;
};

static json_t *call(struct http_client *c, const char *method, const char *path, const json_t *body)
{
	struct err e = {};
	json_t *answer = NULL;

	if (!http_client_call(c, method, path, body, 60000, &answer, &e))
		errx(1, "%s %s: %s", method, path, e.msg);
	return answer;
}

static struct http_client *connected(const struct bench *b)
{
	struct err e = {};
	struct http_client *c;

	if (!http_client_open(b->socket, &c, &e))
		errx(1, "%s", e.msg);
	return c;
}

/* The daemon uses the uid at the time of connect(). */
static struct http_client *connected_as_owner(const struct bench *b)
{
	struct http_client *c;

	if (seteuid(b->owner) < 0)
		err(1, "seteuid");
	c = connected(b);
	if (seteuid(getuid()) < 0)
		err(1, "seteuid");
	return c;
}

static void daemon_start(struct bench *b)
{
	const char *build = getenv("top_builddir");
	char program[4096], state[128], config[128];
	char *argv[] = { program, (char *)"--user", (char *)"--config", config, NULL };
	FILE *f;
	int r;

	strcpy(b->dir, "/tmp/jobsched-bench.XXXXXX");
	if (!mkdtemp(b->dir))
		err(1, "mkdtemp");
	snprintf(program, sizeof(program), "%s/jobschedd", build ? build : ".");
	snprintf(config, sizeof(config), "%s/jobschedd.conf", b->dir);
	snprintf(state, sizeof(state), "%s/run", b->dir);
	snprintf(b->socket, sizeof(b->socket), "%s/run/jobsched/jobsched.sock", b->dir);
	if (mkdir(state, 0700) < 0 || !(f = fopen(config, "w")))
		err(1, "%s", b->dir);
	fprintf(f, "max-running = %d\n", IN_FLIGHT);
	fclose(f);
	setenv("XDG_STATE_HOME", b->dir, 1);
	setenv("XDG_RUNTIME_DIR", state, 1);
	r = posix_spawn(&b->pid, program, NULL, NULL, argv, environ);
	if (r)
		errx(1, "'%s': %s", program, strerror(r));
	for (int i = 0; i < 500; i++) {
		struct err e = {};
		struct http_client *c;

		if (http_client_open(b->socket, &c, &e)) {
			http_client_free(c);
			return;
		}
		usleep(20000);
	}
	errx(1, "the daemon does not answer at '%s'", b->socket);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static void daemon_stop(struct bench *b)
{
	kill(b->pid, SIGTERM);
	waitpid(b->pid, NULL, 0);
	nftw(b->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A job that is not due during the measurement. */
static json_t *later(void)
{
	return json_pack("{s:[s], s:[s]}", "command", "true", "schedule", "2099-01-01T00:00:00Z");
}

static double submit_one_by_one(const struct bench *b)
{
	AUTO(http_client) *c = connected(b);
	json_t *job = later();
	double start = bench_now(), spent;
	long n = 0;

	do {
		json_decref(call(c, "POST", "/v1/jobs", job));
		n++;
		spent = bench_now() - start;
	} while (spent < b->seconds);
	json_decref(job);
	return (double)n / spent;
}

static void *submitter(void *arg)
{
	const struct bench *b = arg;

	return (void *)(intptr_t)(submit_one_by_one(b) * 1000); /* per 1000 seconds */
}

static double submit_by_many(struct bench *b)
{
	pthread_t threads[CLIENTS];
	double sum = 0;

	for (int i = 0; i < CLIENTS; i++)
		if (pthread_create(&threads[i], NULL, submitter, b))
			errx(1, "pthread_create");
	for (int i = 0; i < CLIENTS; i++) {
		void *rate;

		pthread_join(threads[i], &rate);
		sum += (double)(intptr_t)rate / 1000;
	}
	return sum;
}

static void submit_bulk(struct http_client *c, const char *schedule, const char *sandbox, int n)
{
	json_t *body, *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:[s], s:[s], s:s*}", "command", "true", "schedule", schedule,
						    "sandbox", sandbox));
	body = json_pack("{s:o}", "jobs", list);
	json_decref(call(c, "POST", "/v1/jobs/bulk", body));
	json_decref(body);
}

static double submit_in_bulk(const struct bench *b)
{
	AUTO(http_client) *c = connected(b);
	double start = bench_now(), spent;
	long n = 0;

	do {
		submit_bulk(c, "2099-01-01T00:00:00Z", NULL, BULK);
		n += BULK;
		spent = bench_now() - start;
	} while (spent < b->seconds);
	return (double)n / spent;
}

static json_int_t succeeded(struct http_client *c)
{
	json_t *status = call(c, "GET", "/v1/status", NULL);
	json_int_t n = json_integer_value(json_object_get(json_object_get(status, "runs"), "succeeded"));

	json_decref(status);
	return n;
}

/* The spawner of this daemon, found by its directory. */
static pid_t spawner_of(const struct bench *b)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		char path[512], text[4096] = "";
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "/proc/%.20s/cmdline", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		if (n > 0 && strstr(text, "jobsched-spawner") && memmem(text, (size_t)n, b->dir, strlen(b->dir)))
			found = (pid_t)atoi(entry->d_name);
	}
	if (proc)
		closedir(proc);
	return found;
}

struct run_rate {
	double per_second, engine, spawner, all; /* CPU microseconds per run; 'all' includes the jobs */
};

/* Bare process starts per second and their CPU time. The CPU time does not depend on other load of the machine. */
struct bare {
	double per_second, cpu;
};

static struct bare bare_starts(double seconds)
{
	double before = bench_cpu_tree(getpid()), rate = limit_spawn(IN_FLIGHT, seconds);

	return (struct bare){rate, (bench_cpu_tree(getpid()) - before) / (rate * seconds) * 1e6};
}

static struct bare between(struct bare a, struct bare b)
{
	return (struct bare){(a.per_second + b.per_second) / 2, (a.cpu + b.cpu) / 2};
}

/* Polls rarely until most runs have ended, because a request costs the daemon as much as several runs. */
static void await_runs(const struct bench *b, struct http_client *c, json_int_t before, double start)
{
	json_int_t done;

	while ((done = succeeded(c) - before) < b->runs) {
		double spent = bench_now() - start, left = done ? spent * (double)(b->runs - done) / (double)done : 1;

		if (spent > 120)
			errx(1, "only %" JSON_INTEGER_FORMAT " of %d runs ended within 120 s", done, b->runs);
		usleep(left > 1 ? 500000 : left > 0.02 ? (useconds_t)(left * 500000) : 10000);
	}
}

/* All runs are due at the same time. Measures the time until the last end is recorded. */
static struct run_rate run_all(const struct bench *b)
{
	AUTO(http_client) *c = connected(b);
	AUTO(http_client) *owner = connected_as_owner(b);
	time_t due = time(NULL) + 4;
	pid_t spawner = b->spawner ? b->spawner : spawner_of(b);
	char schedule[32];
	json_int_t before = succeeded(c);
	double engine_cpu, spawner_cpu, tree_cpu, start;
	struct timespec wait;

	snprintf(schedule, sizeof(schedule), "@%lld", (long long)due);
	for (int n = 0; n < b->runs; n += BULK)
		submit_bulk(owner, schedule, b->sandbox, BULK);
	clock_gettime(CLOCK_REALTIME, &wait);
	if (wait.tv_sec >= due)
		errx(1, "the submissions took too long to measure the runs");
	engine_cpu = bench_cpu(b->pid);
	spawner_cpu = bench_cpu(spawner);
	tree_cpu = bench_cpu_tree(spawner);
	wait = (struct timespec){ .tv_sec = due };
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &wait, NULL);
	start = bench_now();
	await_runs(b, c, before, start);
	return (struct run_rate){
		.per_second = b->runs / (bench_now() - start),
		.engine = (bench_cpu(b->pid) - engine_cpu) / b->runs * 1e6,
		.spawner = (bench_cpu(spawner) - spawner_cpu) / b->runs * 1e6,
		.all = (bench_cpu(b->pid) - engine_cpu + bench_cpu_tree(spawner) - tree_cpu) / b->runs * 1e6,
	};
}

/* The longest time from the submission of a job to the recorded end of its run, in milliseconds. */
static double start_delay(const struct bench *b)
{
	AUTO(http_client) *c = connected(b);
	double worst = 0;

	for (int i = 0; i < 20; i++) {
		json_t *job = json_pack("{s:[s]}", "command", "true"), *answer;
		double sent = bench_now(), took;
		json_int_t before = succeeded(c);

		answer = call(c, "POST", "/v1/jobs", job);
		while (succeeded(c) == before)
			;
		took = (bench_now() - sent) * 1000;
		worst = took > worst ? took : worst;
		json_decref(answer);
		json_decref(job);
	}
	return worst;
}

static void line(const char *what, double value, const char *of, double limit)
{
	printf("%-52s %10.0f /s", what, value);
	if (limit > 0)
		printf("   %5.2f of %s", value / limit, of);
	putchar('\n');
	fflush(stdout);
}

static void print_runs(const char *what, const struct run_rate *r, struct bare limit)
{
	line(what, r->per_second, "bare starts", limit.per_second);
	printf("%-52s %10.0f us of CPU per run   %5.2f: bare starts take %.0f us\n", "  with engine and spawner", r->all,
		limit.cpu / r->all, limit.cpu);
	printf("%-52s %10.0f us of CPU per run\n", "  engine", r->engine);
	printf("%-52s %10.0f us of CPU per run\n", "  spawner", r->spawner);
}

/* Measures a running daemon with each profile, between two measurements of the limit. */
static int measure_profiles(struct bench *b, char **profiles)
{
	struct bare before = bare_starts(b->seconds), after;

	for (; *profiles; profiles++, before = after) {
		struct run_rate r;
		char what[64];

		b->sandbox = *profiles;
		r = run_all(b);
		after = bare_starts(b->seconds);
		snprintf(what, sizeof(what), "runs of 'true', durable, 8 in flight, '%s'", b->sandbox);
		line("limit: posix_spawn and wait of 'true', 8 in flight", between(before, after).per_second, "", 0);
		print_runs(what, &r, between(before, after));
	}
	return 0;
}

/* bench_product --at SOCKET ENGINE SPAWNER UID RUNS PROFILE... */
static int measure_at(char **argv)
{
	struct bench b = {.seconds = 2, .pid = (pid_t)atoi(argv[1]), .spawner = (pid_t)atoi(argv[2]),
		.owner = (uid_t)atoi(argv[3]), .runs = atoi(argv[4])};

	snprintf(b.socket, sizeof(b.socket), "%s", argv[0]);
	return measure_profiles(&b, argv + 5);
}

int main(int argc, char **argv)
{
	struct bench b = { .seconds = argc > 1 ? atof(argv[1]) : 3, .runs = argc > 2 ? atoi(argv[2]) : 4000,
		.owner = geteuid() };
	double one, many, single;
	struct bare spawn;
	struct run_rate r;

	if (argc > 7 && strcmp(argv[1], "--at") == 0)
		return measure_at(argv + 2);
	if (b.seconds <= 0 || b.runs < BULK) {
		fprintf(stderr, "usage: bench_product [SECONDS [RUNS]]   (at least %d runs)\n"
				"       bench_product --at SOCKET ENGINE SPAWNER UID RUNS PROFILE...\n", BULK);
		return 2;
	}
	daemon_start(&b);
	one = limit_commit(b.dir, 1, b.seconds);
	many = limit_commit(b.dir, BULK, b.seconds);
	spawn = bare_starts(b.seconds);
	line("limit: SQLite commits of one row, FULL", one, "", 0);
	line("limit: SQLite rows in commits of 1000, FULL", many, "", 0);
	line("limit: posix_spawn and wait of 'true', 8 in flight", spawn.per_second, "", 0);

	single = submit_one_by_one(&b);
	line("submissions one by one", single, "commits of one row", one);
	line("submissions by 64 clients", submit_by_many(&b), "one by one", single);
	line("submissions in requests of 1000", submit_in_bulk(&b), "rows in commits of 1000", many);
	r = run_all(&b);
	spawn = between(spawn, bare_starts(b.seconds)); /* measured before and after, because other load changes */
	print_runs("runs of 'true', durable, 8 in flight", &r, spawn);
	printf("%-52s %10.1f ms\n", "submission to recorded end of 'true', worst of 20", start_delay(&b));
	daemon_stop(&b);
	return 0;
}
