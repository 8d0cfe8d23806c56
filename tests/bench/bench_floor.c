/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the least that a durable submission costs. Prints NAME VALUE lines.
 *
 * Floor (b): a client sends one job over a socket, a thread passes it to a writer thread, which inserts job, due row, event and
 * counter in one commit, and the answer goes back the same way. No HTTP, no JSON, no checks.
 * Floor (c): prepared inserts of the same rows in commits of 1000, without socket and threads, with the indexes of the store.
 */
#include "bench/measure.h"
#include <err.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOBS_PER_COMMIT 1000

static const char spec[] = "{\"command\":[\"true\"],\"schedule\":[\"2099-01-01T00:00:00Z\"],\"tz\":\"UTC\",\"cwd\":\"/root\",\"umask\":18}";

static const char tables[] =
	"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
	"CREATE TABLE jobs (id INTEGER PRIMARY KEY, uid INT, owner TEXT, name TEXT, state INT, revision INT, segment INT,"
	" queue TEXT, priority INT, created_at INT, updated_at INT, digest INT, spec TEXT) STRICT;"
	"CREATE TABLE due (job INTEGER PRIMARY KEY, segment INT, slot INT) STRICT;"
	"CREATE TABLE events (id INTEGER PRIMARY KEY, at INT, uid INT, what TEXT, job INT, run INT, detail TEXT) STRICT;"
	"CREATE TABLE counters (what INT, state INT, queue TEXT, n INT, PRIMARY KEY (what, state, queue)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX jobs_uid_state ON jobs (uid, state, id);"
	"CREATE INDEX jobs_by_name ON jobs (name, id);"
	"CREATE INDEX due_slot ON due (slot, segment);"
	"INSERT INTO counters VALUES (1, 1, 'default', 0)";

/* The further indexes of floor (c): those that lists of jobs and events need. */
static const char more_indexes[] =
	"CREATE INDEX jobs_state ON jobs (state, id);"
	"CREATE INDEX events_job ON events (job, id);";

static const char *const inserts[] = {
	"INSERT INTO jobs VALUES (NULL, 1000, 'bench', NULL, 0, 1, 7, 'default', 0, ?1, ?1, 4711, ?2)",
	"INSERT INTO due VALUES (last_insert_rowid(), 7, ?1)",
	"INSERT INTO events VALUES (NULL, ?1, 1000, 'job.add', ?1, 0, NULL)",
};
#define INSERTS (sizeof(inserts) / sizeof(*inserts))

struct floor_store {
	char path[4096];
	sqlite3 *db;
	sqlite3_stmt *insert[INSERTS], *count, *begin, *commit;
	long n;
};

static void sql(sqlite3 *db, const char *text)
{
	char *message = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		errx(1, "%s: %s", text, message);
}

static sqlite3_stmt *prepared(sqlite3 *db, const char *text)
{
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(db, text, -1, &s, NULL) != SQLITE_OK)
		errx(1, "%s: %s", text, sqlite3_errmsg(db));
	return s;
}

static void step(struct floor_store *f, sqlite3_stmt *s)
{
	if (sqlite3_step(s) != SQLITE_DONE)
		errx(1, "%s", sqlite3_errmsg(f->db));
	sqlite3_reset(s);
}

static void floor_open(struct floor_store *f, const char *dir)
{
	snprintf(f->path, sizeof(f->path), "%s/floor.db", dir);
	unlink(f->path);
	if (sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		errx(1, "%s: %s", f->path, sqlite3_errmsg(f->db));
	sql(f->db, tables);
	for (size_t i = 0; i < INSERTS; i++)
		f->insert[i] = prepared(f->db, inserts[i]);
	f->count = prepared(f->db, "UPDATE counters SET n = n + ?1 WHERE what = 1 AND state = 1 AND queue = 'default'");
	f->begin = prepared(f->db, "BEGIN IMMEDIATE");
	f->commit = prepared(f->db, "COMMIT");
}

static void floor_close(struct floor_store *f)
{
	for (size_t i = 0; i < INSERTS; i++)
		sqlite3_finalize(f->insert[i]);
	sqlite3_finalize(f->count);
	sqlite3_finalize(f->begin);
	sqlite3_finalize(f->commit);
	sqlite3_close(f->db);
	unlink(f->path);
}

static void add_jobs(struct floor_store *f, int n)
{
	step(f, f->begin);
	for (int i = 0; i < n; i++) {
		f->n++;
		for (size_t k = 0; k < INSERTS; k++)
			sqlite3_bind_int64(f->insert[k], 1, 4070908800000000 + f->n);
		sqlite3_bind_text(f->insert[0], 2, spec, sizeof(spec) - 1, SQLITE_STATIC);
		for (size_t k = 0; k < INSERTS; k++)
			step(f, f->insert[k]);
	}
	sqlite3_bind_int(f->count, 1, n);
	step(f, f->count);
	step(f, f->commit);
}

static double own_cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* ---- floor (b): client, loop thread and writer thread ---- */

struct server {
	struct floor_store store;
	pthread_mutex_t lock;
	pthread_cond_t wanted, done;
	bool waiting, stop;
	int fd;
};

static void *writer_thread(void *arg)
{
	struct server *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->waiting && !s->stop)
			pthread_cond_wait(&s->wanted, &s->lock);
		if (s->stop)
			break;
		pthread_mutex_unlock(&s->lock);
		add_jobs(&s->store, 1);
		pthread_mutex_lock(&s->lock);
		s->waiting = false;
		pthread_cond_signal(&s->done);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void *loop_thread(void *arg)
{
	struct server *s = arg;
	char text[1024];

	while (read(s->fd, text, sizeof(text)) > 0) {
		pthread_mutex_lock(&s->lock);
		s->waiting = true;
		pthread_cond_signal(&s->wanted);
		while (s->waiting)
			pthread_cond_wait(&s->done, &s->lock);
		pthread_mutex_unlock(&s->lock);
		if (write(s->fd, "ok", 2) != 2)
			err(1, "write");
	}
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wanted);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void floor_single(const char *dir, double seconds)
{
	struct server s = {.lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
	pthread_t writer, loop;
	double start, cpu, spent;
	int fds[2];
	char answer[8];
	long n = 0;

	floor_open(&s.store, dir);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		err(1, "socketpair");
	s.fd = fds[1];
	if (pthread_create(&writer, NULL, writer_thread, &s) || pthread_create(&loop, NULL, loop_thread, &s))
		errx(1, "pthread_create");
	start = bench_now();
	cpu = own_cpu();
	do {
		if (write(fds[0], spec, sizeof(spec)) < 0 || read(fds[0], answer, sizeof(answer)) <= 0)
			err(1, "socket");
		n++;
	} while ((spent = bench_now() - start) < seconds);
	printf("floor.single.rate %.0f\nfloor.single.cpu %.1f\n", (double)n / spent, (own_cpu() - cpu) / (double)n * 1e6);
	close(fds[0]);
	pthread_join(loop, NULL);
	pthread_join(writer, NULL);
	close(fds[1]);
	floor_close(&s.store);
}

static void floor_bulk(const char *dir, double seconds)
{
	struct floor_store f = {};
	double start, cpu, spent;

	floor_open(&f, dir);
	sql(f.db, more_indexes);
	start = bench_now();
	cpu = own_cpu();
	do
		add_jobs(&f, JOBS_PER_COMMIT);
	while ((spent = bench_now() - start) < seconds);
	printf("floor.bulk.rate %.0f\nfloor.bulk.cpu %.2f\n", (double)f.n / spent, (own_cpu() - cpu) / (double)f.n * 1e6);
	floor_close(&f);
}

/* Bare starts: process starts per second, and CPU microseconds of each. */
static void floor_spawn(double seconds)
{
	double before = bench_cpu_tree(getpid()), rate = limit_spawn(8, seconds);

	printf("spawn.rate %.0f\nspawn.cpu %.1f\n", rate, (bench_cpu_tree(getpid()) - before) / (rate * seconds) * 1e6);
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 3;

	if (argc < 2 || seconds <= 0) {
		fprintf(stderr, "usage: bench_floor DIRECTORY [SECONDS]\n");
		return 2;
	}
	floor_single(argv[1], seconds);
	floor_bulk(argv[1], seconds);
	floor_spawn(seconds);
	return 0;
}
