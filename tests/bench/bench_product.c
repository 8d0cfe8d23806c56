/* SPDX-License-Identifier: Apache-2.0 */
/* Measures submissions and runs of a running daemon, and bare process starts beside them. Prints NAME VALUE lines. */
#include "base/err.h"
#include "base/text.h"
#include "bench/measure.h"
#include "wire/http_client.h"
#include <err.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 64
#define IN_FLIGHT 8
#define BULK 1000

/* A running daemon. */
struct bench {
	char socket[128];
	pid_t pid, spawner;
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

/* A job that is not due during the measurement. */
static json_t *later(void)
{
	return json_pack("{s:[s], s:[s]}", "command", "true", "schedule", "2099-01-01T00:00:00Z");
}

static double submit_one_by_one(struct bench *b)
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
	struct bench *b = arg;

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

struct waiter {
	const struct bench *b;
	double *took; /* owned: milliseconds of each submission */
	size_t n;
	pthread_t thread;
};

static void *submit_and_wait(void *arg)
{
	struct waiter *w = arg;
	AUTO(http_client) *c = connected(w->b);
	json_t *job = later();
	double start = bench_now();

	while (bench_now() - start < w->b->seconds) {
		double sent = bench_now();

		json_decref(call(c, "POST", "/v1/jobs", job));
		w->took = xgrow(w->took, w->n, sizeof(*w->took));
		w->took[w->n++] = (bench_now() - sent) * 1000;
	}
	json_decref(job);
	return NULL;
}

static int compare_times(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Submissions by some clients: jobs per second, and the median time of a submission. */
static void measure_clients(const struct bench *b, int clients)
{
	struct waiter *v = xcalloc((size_t)clients, sizeof(*v));
	double *all = NULL;
	size_t n = 0;

	for (int i = 0; i < clients; i++) {
		v[i].b = b;
		if (pthread_create(&v[i].thread, NULL, submit_and_wait, &v[i]))
			errx(1, "pthread_create");
	}
	for (int i = 0; i < clients; i++) {
		pthread_join(v[i].thread, NULL);
		for (size_t k = 0; k < v[i].n; k++) {
			all = xgrow(all, n, sizeof(*all));
			all[n++] = v[i].took[k];
		}
		free(v[i].took);
	}
	qsort(all, n, sizeof(*all), compare_times);
	printf("clients.rate %.0f\nclients.median %.2f\n", (double)n / b->seconds, all[n / 2]);
	free(all);
	free(v);
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

static double submit_in_bulk(struct bench *b)
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
	pid_t spawner = b->spawner;
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

/* Submissions by one client, by many, and in requests of 1000 jobs: jobs per second, and CPU of client and daemon per job. */
static void measure_submissions(struct bench *b)
{
	static const struct {
		const char *name;
		double (*submit)(struct bench *b);
	} ways[] = {{"single", submit_one_by_one}, {"many", submit_by_many}, {"bulk", submit_in_bulk}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		double engine = bench_cpu(b->pid), client = bench_cpu(getpid()), start = bench_now(), rate = ways[i].submit(b);
		double n = rate * (bench_now() - start);

		printf("submit.%s.rate %.0f\n", ways[i].name, rate);
		printf("submit.%s.engine %.1f\n", ways[i].name, (bench_cpu(b->pid) - engine) / n * 1e6);
		printf("submit.%s.client %.1f\n", ways[i].name, (bench_cpu(getpid()) - client) / n * 1e6);
	}
}

/* Each profile, between two measurements of the limit, because other load changes. */
static void measure_profiles(struct bench *b, char **profiles)
{
	struct bare before = bare_starts(b->seconds), after, limit;

	for (; *profiles; profiles++, before = after) {
		struct run_rate r;

		b->sandbox = *profiles;
		r = run_all(b);
		after = bare_starts(b->seconds);
		limit = between(before, after);
		printf("bare.%s.rate %.0f\nbare.%s.cpu %.1f\n", b->sandbox, limit.per_second, b->sandbox, limit.cpu);
		printf("runs.%s.rate %.0f\nruns.%s.all %.1f\nruns.%s.engine %.1f\nruns.%s.spawner %.1f\n", b->sandbox, r.per_second,
			b->sandbox, r.all, b->sandbox, r.engine, b->sandbox, r.spawner);
		fflush(stdout);
	}
}

static void load(struct bench *b, long n, const char *schedule)
{
	AUTO(http_client) *c = connected(b);
	double engine = bench_cpu(b->pid), start = bench_now();

	for (long done = 0; done < n; done += BULK)
		submit_bulk(c, schedule, NULL, BULK);
	printf("load.rate %.0f\nload.engine %.1f\n", (double)n / (bench_now() - start),
		(bench_cpu(b->pid) - engine) / (double)n * 1e6);
}

static int usage(void)
{
	fprintf(stderr, "usage: bench_product submit SOCKET ENGINE SECONDS\n"
			"       bench_product clients SOCKET ENGINE CLIENTS SECONDS\n"
			"       bench_product load SOCKET ENGINE JOBS SCHEDULE\n"
			"       bench_product delay SOCKET\n"
			"       bench_product runs SOCKET ENGINE SPAWNER UID RUNS PROFILE...\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct bench b = {.seconds = 2, .owner = geteuid()};

	if (argc < 3)
		return usage();
	snprintf(b.socket, sizeof(b.socket), "%s", argv[2]);
	b.pid = argc > 3 ? (pid_t)atoi(argv[3]) : 0;
	if (argc == 5 && strcmp(argv[1], "submit") == 0) {
		b.seconds = atof(argv[4]);
		measure_submissions(&b);
	} else if (argc == 6 && strcmp(argv[1], "clients") == 0 && atoi(argv[4]) > 0) {
		b.seconds = atof(argv[5]);
		measure_clients(&b, atoi(argv[4]));
	} else if (argc == 6 && strcmp(argv[1], "load") == 0) {
		load(&b, atol(argv[4]), argv[5]);
	} else if (argc == 3 && strcmp(argv[1], "delay") == 0) {
		printf("delay.worst %.1f\n", start_delay(&b));
	} else if (argc > 7 && strcmp(argv[1], "runs") == 0) {
		b.spawner = (pid_t)atoi(argv[4]);
		b.owner = (uid_t)atoi(argv[5]);
		b.runs = atoi(argv[6]);
		measure_profiles(&b, argv + 7);
	} else {
		return usage();
	}
	return 0;
}
