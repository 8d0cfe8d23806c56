/* SPDX-License-Identifier: Apache-2.0 */
/* Store tests on PostgreSQL: a private server on a Unix socket, one database per store. */
#include "base/text.h"
#include "unit/store/store_suite.h"
#include <dirent.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

const struct db_ops *const fixture_ops = &db_postgres_ops;
const struct db_sql *const place_sql = &postgres_sql;
const struct suite_part *const store_engine_parts[] = {&store_server_part, &store_locks_part, &store_event_order_part, &store_rivals_part, &store_round_trips_part, &store_beside_part, NULL};

/* The server of this program; cmocka's group functions have no argument for it. */
static char *server_dir;
static pid_t server_pid;
static int databases;
static char *spare; /* a database whose store was dropped */
static PGconn *side; /* an additional connection to the database that was last queried */
static char *side_where;

static void close_side(void)
{
	PQfinish(STEAL(side));
	free(STEAL(side_where));
}

/* The server refuses to run as root, so the child changes to another user. */
static void become_unprivileged(void)
{
	const struct passwd *pw = getpwnam("postgres");

	if (getuid() != 0)
		return;
	if (!pw)
		pw = getpwnam("nobody");
	if (!pw || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
		_exit(126);
}

static pid_t start(const char *const argv[])
{
	pid_t pid = fork();

	if (pid == 0) {
		AUTO_TEXT log = xprintf("%s/log", server_dir);
		int fd;

		become_unprivileged();
		prctl(PR_SET_PDEATHSIG, SIGQUIT); /* the server ends with the test */
		fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
		dup2(fd, 1);
		dup2(fd, 2);
		if (chdir(server_dir) < 0)
			_exit(126);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}

/* Debian keeps the server's programs per version. JOBSCHED_PG_BIN names another directory, see versions.py. */
static char *program(const char *name)
{
	const char *given = getenv("JOBSCHED_PG_BIN");

	if (given)
		return xprintf("%s/%s", given, name);
	for (int version = 20; version >= 13; version--) {
		char *path = xprintf("/usr/lib/postgresql/%d/bin/%s", version, name);

		if (access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

static void show_log(void)
{
	AUTO_TEXT log = xprintf("%s/log", server_dir);
	AUTO_DONE(buf) text = {};

	if (io_read_file(log, &text, 1 << 20) == 0)
		print_error("%s\n", text.data);
}

static int run_to_end(const char *const argv[])
{
	int status = -1;
	pid_t pid = start(argv);

	waitpid(pid, &status, 0);
	return status;
}

static char *place_of(const char *database)
{
	return xprintf("postgresql://jobsched@/%s?host=%s", database, server_dir);
}

static void admin(const char *sql)
{
	AUTO_TEXT where = place_of("postgres");
	PGconn *c = PQconnectdb(where);
	PGresult *r = PQexec(c, sql);

	if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
		print_error("%s: %s\n", sql, PQerrorMessage(c));
	PQclear(r);
	PQfinish(c);
}

static bool wait_until_up(void)
{
	AUTO_TEXT where = place_of("postgres");

	for (int i = 0; i < 300; i++) {
		if (PQping(where) == PQPING_OK)
			return true;
		usleep(50000);
	}
	return false;
}

void place_server_start(void)
{
	AUTO_TEXT postgres = program("postgres");
	AUTO_TEXT data = xprintf("%s/data", server_dir);
	const char *const argv[] = {postgres, "-D", data, "-k", server_dir, "-c", "listen_addresses=", "-c",
		"fsync=off", "-c", "max_connections=20", "-c", "autovacuum=off", "-c", "shared_buffers=32MB", NULL};

	server_pid = start(argv);
	wait_until_up();
}

int place_group_setup(void **state)
{
	AUTO_TEXT initdb = program("initdb");
	AUTO_TEXT dir = xprintf("%s/store-test-pg-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	AUTO_TEXT data = NULL;

	(void)state;
	if (!initdb || !mkdtemp(dir)) {
		print_error("PostgreSQL's server programs are needed (Debian: postgresql)\n");
		return -1;
	}
	server_dir = STEAL(dir);
	if (getuid() == 0) {
		const struct passwd *pw = getpwnam("postgres");

		if (!pw)
			pw = getpwnam("nobody");
		if (!pw || chown(server_dir, pw->pw_uid, pw->pw_gid) < 0)
			return -1;
	}
	data = xprintf("%s/data", server_dir);
	const char *const argv[] = {initdb, "-D", data, "-U", "jobsched", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync", NULL};

	if (run_to_end(argv) != 0) {
		show_log();
		return -1;
	}
	place_server_start();
	if (!wait_until_up()) {
		show_log();
		return -1;
	}
	return 0;
}

static void remove_tree(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		AUTO_TEXT name = xprintf("%s/%s", path, entry->d_name);
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (lstat(name, &st) == 0 && S_ISDIR(st.st_mode))
			remove_tree(name);
		else
			unlink(name);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

void place_server_stop(void)
{
	close_side();
	if (server_pid > 0) {
		kill(server_pid, SIGINT);
		waitpid(server_pid, NULL, 0);
	}
	server_pid = 0;
}

int place_group_teardown(void **state)
{
	(void)state;
	place_server_stop();
	if (server_dir)
		remove_tree(server_dir);
	free(STEAL(spare));
	free(STEAL(server_dir));
	return 0;
}

static void side_open(const char *where)
{
	if (side && text_equal(side_where, where))
		return;
	close_side();
	side = PQconnectdb(where);
	side_where = xstrdup(where);
	PQclear(PQexec(side, "SET search_path = jobsched; SET client_min_messages = warning"));
}

static void add_rows(const PGresult *r, struct buf *out)
{
	for (int row = 0; out && row < PQntuples(r); row++) {
		for (int i = 0; i < PQnfields(r); i++)
			buf_printf(out, "%s|", PQgetisnull(r, row, i) ? "-" : PQgetvalue(r, row, i));
		buf_char(out, '\n');
	}
}

/* The statements of 'sql' take one round trip. */
void place_query(const char *where, const char *sql, struct buf *out)
{
	PGresult *r;

	side_open(where);
	if (!PQsendQuery(side, sql))
		fail_msg("%s: %s", sql, PQerrorMessage(side));
	while ((r = PQgetResult(side))) {
		if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
			fail_msg("%s: %s", sql, PQresultErrorMessage(r));
		add_rows(r, out);
		PQclear(r);
	}
}

void place_queries(const char *where, const char *const *sql, size_t n, struct buf *out)
{
	AUTO_DONE(buf) all = {};

	for (size_t i = 0; i < n; i++)
		buf_printf(&all, "%s;", sql[i]);
	place_query(where, all.data, out);
}

/* The tables are empty, so the planner is told not to prefer what is cheap only then: sequential scans, and joins that read a
 * whole table or index. */
void place_explain(const char *where, const struct db_query *q, struct buf *out)
{
	static const char *const types[] = {[DB_INT] = "bigint", [DB_TEXT] = "text", [DB_JSON] = "jsonb"};
	AUTO_DONE(buf) sql = {};
	AUTO_DONE(buf) rows = {};

	buf_str(&sql, "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_mergejoin = off; "
		"SET enable_hashjoin = off; SET enable_bitmapscan = off; PREPARE plan");
	for (int i = 0; i < q->n_params; i++)
		buf_printf(&sql, "%s%s", i == 0 ? " (" : ", ", types[q->params[i].type]);
	buf_printf(&sql, "%s AS %s", q->n_params ? ")" : "", q->sql);
	place_query(where, sql.data, NULL);
	buf_clear(&sql);
	buf_str(&sql, "EXPLAIN (COSTS OFF) EXECUTE plan");
	for (int i = 0; i < q->n_params; i++)
		buf_printf(&sql, "%sNULL", i == 0 ? " (" : ", ");
	buf_str(&sql, q->n_params ? ")" : "");
	place_query(where, sql.data, &rows);
	place_query(where, "DEALLOCATE plan; RESET enable_seqscan; RESET enable_mergejoin; RESET enable_hashjoin; "
		"RESET enable_bitmapscan; RESET plan_cache_mode", NULL);
	buf_str(out, rows.data);
}

#define CLEARS_TO_VACUUM 50

void place_clear(const char *where)
{
	static int cleared;

	place_query(where, "DELETE FROM jobs; DELETE FROM job_tags; DELETE FROM job_revisions; DELETE FROM templates; DELETE FROM owners; DELETE FROM due; DELETE FROM runs;"
		"DELETE FROM attempts; DELETE FROM outputs; DELETE FROM nodes; DELETE FROM boots; DELETE FROM counters; DELETE FROM running_jobs; DELETE FROM notices; DELETE FROM job_health;"
		"DELETE FROM run_states; DELETE FROM run_progress; DELETE FROM chains; DELETE FROM run_moves; DELETE FROM pauses; DELETE FROM job_pauses; DELETE FROM pauses_past; DELETE FROM tokens; DELETE FROM events; DELETE FROM segments; DELETE FROM node_orders; UPDATE leases SET holder = '', term = 0, until = 0; DELETE FROM buckets; DELETE FROM limits WHERE scope <> 'queue' OR key <> 'default';"
		/* not by ALTER, which would invalidate every plan */
		"SELECT setval('jobs_id', 1, false), setval('runs_id', 1, false), setval(pg_get_serial_sequence('notices', 'id'), 1, false)",
		NULL);
	if (++cleared % CLEARS_TO_VACUUM == 0)
		place_query(where, "VACUUM", NULL);
}

char *place_new(void)
{
	AUTO_TEXT name = NULL;
	AUTO_TEXT sql = NULL;

	if (spare)
		return STEAL(spare);
	name = xprintf("store%d", ++databases);
	sql = xprintf("CREATE DATABASE %s", name);
	admin(sql);
	return place_of(name);
}

/* The database is reused: creating one takes longer than a test. */
void place_drop(const char *where)
{
	place_query(where, "DROP SCHEMA IF EXISTS jobsched CASCADE", NULL);
	close_side();
	free(spare);
	spare = xstrdup(where);
}
