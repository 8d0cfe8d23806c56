/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the PostgreSQL backend: reconnection, timeouts, several nodes on one store. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/read/check.h"
#include "store/store.h"
#include "store/tx.h"
#include "unit/store/store_suite.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void kill_sessions(const char *where)
{
	place_query(where, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
			   " WHERE application_name = 'jobsched' AND datname = current_database()", NULL);
}

static void a_killed_session_is_made_again(void **state)
{
	struct fixture *f = *state;
	AUTO(store) *reader = open_or_fail(f->where, true);
	struct store_counts c = {};
	struct err e = {};

	for (int i = 0; i < 3; i++) {
		kill_sessions(f->where);
		add_job(f->store, NULL);
		if (!store_counts(reader, &c, &e))
			fail_msg("%s", e.msg);
		assert_int_equal(c.jobs[JOB_ACTIVE], i + 1);
	}
	assert_counts_true(f->store);
}

static void a_store_that_is_away_is_busy_and_comes_back(void **state)
{
	struct fixture *f = *state;
	AUTO(op) *op = op_add("patient", NULL, NULL);
	struct batch_wake wake;
	struct store_counts c;
	struct err e = {};

	place_server_stop();
	assert_false(batch_apply(f->store, &op, 1, &wake, &e));
	assert_int_equal(e.kind, ERR_BUSY);
	assert_int_equal(op->err.kind, ERR_BUSY);
	assert_false(store_counts(f->store, &c, &e));
	assert_int_equal(e.kind, ERR_BUSY);
	place_server_start();
	assert_true(apply_one(f->store, op));
	assert_counts_true(f->store);
}

/* SQLSTATE codes, and whether a retry may help. */
static const struct {
	const char *state;
	enum err_kind kind;
} sayings[] = {
	{"53200", ERR_BUSY},        /* out of memory */
	{"53300", ERR_BUSY},        /* too many connections */
	{"53100", ERR_FULL},
	{"40001", ERR_BUSY},        /* serialisation */
	{"40P01", ERR_BUSY},        /* deadlock */
	{"55P03", ERR_BUSY},        /* lock timeout */
	{"57014", ERR_BUSY},        /* statement timeout */
	{"25006", ERR_BUSY},        /* the server is a standby */
	{"58030", ERR_BUSY},        /* I/O error */
	{"57P03", ERR_BUSY},        /* it is starting */
	{"08006", ERR_BUSY},
	{"54000", ERR_TOO_LARGE},
	{"22012", ERR_INTERNAL},
	{"XX001", ERR_UNCERTAIN},   /* damaged: no further writes */
};

static void errors_of_the_server_are_classified(void **state)
{
	struct store *s = store_of(state);
	const char *where = where_of(state);

	for (size_t i = 0; i < ELEMENTS(sayings); i++) {
		AUTO_TEXT says = xprintf("CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
			"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '%s'; END $$", sayings[i].state);
		AUTO(op) *op = op_add(NULL, NULL, NULL);
		struct op *ops[] = {op};
		struct err e = {};
		bool applied;

		place_query(where, says, NULL);
		place_query(where, "CREATE TRIGGER refuse BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION refuse()", NULL);
		applied = batch_apply(s, ops, 1, &(struct batch_wake){}, &e);
		assert_false(op->ok);
		if (op->err.kind != sayings[i].kind || (applied && sayings[i].kind == ERR_BUSY))
			fail_msg("%s: %d, not %d: %s", sayings[i].state, op->err.kind, sayings[i].kind, op->err.msg);
		place_query(where, "DROP TRIGGER refuse ON jobs", NULL);
	}
	add_job(s, NULL); /* the session still works */
	assert_counts_true(s);
}

/* Applies one batch of them. Returns how many were applied; frees the operations. */
static size_t applied_of(struct store *s, struct op **ops, size_t n)
{
	struct err e = {};
	size_t ok = 0;

	batch_apply(s, ops, n, &(struct batch_wake){}, &e);
	for (size_t i = 0; i < n; i++) {
		ok += ops[i]->ok;
		op_free(ops[i]);
	}
	return ok;
}

/* Adds jobs of a user who may have 100. */
static size_t add_limited(struct store *s, size_t n)
{
	struct op *ops[100];

	for (size_t i = 0; i < n; i++) {
		ops[i] = op_add(NULL, NULL, NULL);
		job_add_op(ops[i])->job.limit = 100;
	}
	return applied_of(s, ops, n);
}

static void cancellations_that_were_rolled_back_leave_no_room_for_more_jobs(void **state)
{
	struct store *s = store_of(state);
	const char *where = where_of(state);
	struct op *cancels[30];

	assert_int_equal(add_limited(s, 80), 80);
	place_query(where, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' "
		"USING ERRCODE = '55P03'; END $$; CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION refuse()", NULL);
	for (size_t i = 0; i < ELEMENTS(cancels); i++)
		cancels[i] = op_job_cancel(OP_JOB_CANCEL, (int64_t)i + 1);
	assert_int_equal(applied_of(s, cancels, ELEMENTS(cancels)), 0);
	place_query(where, "DROP TRIGGER refuse ON jobs", NULL);
	assert_int_equal(add_limited(s, 60), 20);
	assert_counts_true(s);
}

static void an_unreachable_server_is_reported_at_open(void **state)
{
	struct store *s = NULL;
	struct err e = {};

	(void)state;
	assert_false(store_open(&(struct store_options){.where = "postgresql:///x?host=/nonexistent"}, &s, &e));
	assert_int_equal(e.kind, ERR_UNREACHABLE);
}

/* A server with this text for the settings of a session. */
static bool opens_with_setup(const char *where, const char *setup, struct err *e)
{
	const char *texts[TEXT_POSTGRES_MAX];
	struct db_sql sql = postgres_sql;
	struct db *db = NULL;

	memcpy(texts, postgres_sql.texts, sizeof(texts));
	texts[TEXT_POSTGRES_SETUP] = setup;
	sql.texts = texts;
	if (!db_postgres_ops.open(&(struct db_options){.where = where, .sql = &sql, .read_only = true}, &db, e))
		return false;
	db_postgres_ops.close(db);
	return true;
}

static void a_server_without_a_setting_is_used_unless_the_setting_is_required(void **state)
{
	const char *where = where_of(state);
	struct err e = {};

	assert_true(opens_with_setup(where, "SET search_path = jobsched; SET no_such_setting = 1; SET statement_timeout = '5s'", &e));
	assert_false(opens_with_setup(where, "SET no_such_setting = 1; SET statement_timeout = '5s'", &e));
	assert_int_equal(e.kind, ERR_REFUSED);
	assert_non_null(strstr(e.msg, "'search_path'"));
	assert_false(opens_with_setup(where, "SET search_path = jobsched; SET no_such_setting = 1; SET statement_timeout = 0", &e));
	assert_non_null(strstr(e.msg, "'statement_timeout'"));
}

/* ---- servers that accept a connection and do not answer ---- */

/* Listens as a server would. Returns its directory, caller frees. */
static char *silent_server(int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char *dir = xstrdup("/tmp/jobsched-silent.XXXXXX");

	assert_non_null(mkdtemp(dir));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.5432", dir);
	*ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*ret_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(*ret_fd, 16), 0);
	return dir;
}

static void silent_server_end(char *dir, int fd)
{
	AUTO_TEXT socket = xprintf("%s/.s.PGSQL.5432", dir);

	close(fd);
	unlink(socket);
	rmdir(dir);
	free(dir);
}

static void a_silent_server_is_given_up_well_within_the_lease(void **state)
{
	int fd;
	char *dir = silent_server(&fd);
	AUTO_TEXT where = xprintf("postgresql:///x?host=%s", dir);
	usec_t began = clock_boot(&clock_system), took;
	struct store *s = NULL;
	struct err e = {};

	(void)state;
	assert_false(store_open(&(struct store_options){.where = where, .lease = 2 * USEC_SEC}, &s, &e));
	took = clock_boot(&clock_system) - began;
	assert_int_equal(e.kind, ERR_UNREACHABLE);
	assert_non_null(strstr(e.msg, "no answer"));
	assert_true(took >= 600 * USEC_MSEC); /* a third of the lease */
	assert_true(took < 7500 * USEC_MSEC); /* without a lease it is eight seconds */
	silent_server_end(dir, fd);
}

static void a_silent_server_is_passed_over_for_the_next_one(void **state)
{
	struct fixture *f = *state;
	const char *hosts = strstr(f->where, "host=") + strlen("host=");
	int fd;
	char *dir = silent_server(&fd);
	AUTO_TEXT where = xprintf("%.*s%s,%s", (int)(hosts - f->where), f->where, dir, hosts);
	AUTO(store) *s = NULL;
	struct err e = {};

	if (!store_open(&(struct store_options){.where = where, .lease = 2 * USEC_SEC}, &s, &e))
		fail_msg("%s", e.msg);
	add_job(s, NULL);
	silent_server_end(dir, fd);
}

/* ---- several nodes ---- */

struct node {
	const char *where;
	char name[16];
	pthread_t thread;
	int64_t claimed[2000];
	size_t n;
	bool failed;
};

static struct op *claim_as(const struct node *n)
{
	struct op *op = op_claim(7, T0);

	claim_op(op)->node = n->name;
	return op;
}

static void *claim_until_empty(void *arg)
{
	struct node *n = arg;
	struct db_options o = {.where = n->where};
	struct store *s = NULL;
	struct err e = {};
	AUTO(op) *open = op_node_open(n->name, n->name, n->name);
	size_t got = 1;

	if (!store_open_with(fixture_ops, &o, &s, &e) || !batch_apply(s, &open, 1, &(struct batch_wake){}, &e)) {
		n->failed = true;
		store_free(s);
		return NULL;
	}
	for (int idle = 0; idle < 3; idle = got ? 0 : idle + 1) { /* runs that a peer has locked are skipped */
		AUTO(op) *op = claim_as(n);

		n->failed |= !batch_apply(s, &op, 1, &(struct batch_wake){}, &e) || !op->ok;
		got = claim_op(op)->claimed.n;
		for (size_t i = 0; i < got; i++)
			n->claimed[n->n++] = claim_op(op)->claimed.v[i].run->id;
	}
	store_free(s);
	return NULL;
}

static void two_nodes_never_claim_the_same_run(void **state)
{
	enum { NODES = 3, RUNS = 400 };
	struct fixture *f = *state;
	struct node nodes[NODES] = {};
	struct op *ops[RUNS];
	bool seen[RUNS + 1] = {};
	size_t total = 0;

	for (int i = 0; i < RUNS; i++)
		ops[i] = op_add(NULL, NULL, NULL);
	apply_all(f->store, ops, RUNS);
	for (int i = 0; i < NODES; i++) {
		nodes[i].where = f->where;
		snprintf(nodes[i].name, sizeof(nodes[i].name), "n%d", i);
		pthread_create(&nodes[i].thread, NULL, claim_until_empty, &nodes[i]);
	}
	for (int i = 0; i < NODES; i++) {
		pthread_join(nodes[i].thread, NULL);
		assert_false(nodes[i].failed);
		for (size_t k = 0; k < nodes[i].n; k++) {
			assert_in_range(nodes[i].claimed[k], 1, RUNS);
			assert_false(seen[nodes[i].claimed[k]]);
			seen[nodes[i].claimed[k]] = true;
		}
		total += nodes[i].n;
	}
	assert_int_equal(total, RUNS);
	assert_counts_true(f->store);
	for (int i = 0; i < RUNS; i++)
		op_free(ops[i]);
}

/* One thread ends one of a job's runs. */
struct ender {
	struct store *s;
	struct op *op;
	pthread_t thread;
	bool ok;
};

static void *end_it(void *arg)
{
	struct ender *e = arg;
	struct err err = {};

	e->ok = batch_apply(e->s, &e->op, 1, &(struct batch_wake){}, &err) && e->op->ok;
	return NULL;
}

static void two_slots(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	for (usec_t i = 0; i < 2; i++)
		plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot + i, .due_at = T0});
}

static void the_last_two_ends_at_once_finish_the_job(void **state)
{
	struct fixture *f = *state;
	AUTO(store) *other = open_or_fail(f->where, false);

	for (int round = 0; round < 25; round++) {
		AUTO(op) *add = op_add(NULL, NULL, NULL);
		AUTO(op) *plan = op_new(OP_PLAN, NULL, NULL);
		AUTO(op) *claim = op_claim(2, T0);
		struct ender enders[2];
		AUTO(job) *job = NULL;

		job_add_op(add)->job.run_at = 0;
		job_add_op(add)->job.next_slot = T0;
		assert_true(apply_one(f->store, add));
		op_fill(plan_op(plan), .now = T0, .horizon = T0, .limit = 9, .fn = two_slots);
		assert_true(apply_one(f->store, plan));
		assert_true(apply_one(f->store, claim));
		assert_int_equal(claim_op(claim)->claimed.n, 2);
		for (int i = 0; i < 2; i++) {
			enders[i] = (struct ender){.s = i ? other : f->store,
				.op = op_ended(claim_op(claim)->claimed.v[i].run, ATTEMPT_SUCCEEDED, T0 + 1)};
			pthread_create(&enders[i].thread, NULL, end_it, &enders[i]);
		}
		for (int i = 0; i < 2; i++) {
			pthread_join(enders[i].thread, NULL);
			assert_true(enders[i].ok);
			op_free(enders[i].op);
		}
		job = get_job(f->store, job_add_op(add)->job.id);
		assert_int_equal(job->state, JOB_FINISHED);
	}
	assert_counts_true(f->store);
}

static void *just_open(void *arg)
{
	struct node *n = arg;
	struct db_options o = {.where = n->where};
	struct store *s = NULL;
	struct err e = {};

	n->failed = !store_open_with(fixture_ops, &o, &s, &e);
	store_free(s);
	return NULL;
}

static void nodes_that_start_together_make_one_schema(void **state)
{
	AUTO_TEXT where = place_new();
	struct node nodes[4] = {};

	(void)state;
	for (int i = 0; i < 4; i++) {
		nodes[i].where = where;
		pthread_create(&nodes[i].thread, NULL, just_open, &nodes[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(nodes[i].thread, NULL);
		assert_false(nodes[i].failed);
	}
	place_drop(where);
}

/* ---- the row in 'writers' ---- */

static void *commit_later(void *arg)
{
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
	place_query(arg, "COMMIT", NULL);
	return NULL;
}

static void a_commit_still_under_way_is_waited_for(void **state)
{
	struct fixture *f = *state;
	struct store *s = f->store;
	AUTO_TEXT sql = xprintf("BEGIN; UPDATE writers SET batch = 4242 WHERE id = '%s'", s->writer);
	AUTO_QUERY q = {};
	AUTO_TX tx = {};
	pthread_t thread;
	struct err e = {};

	place_query(f->where, sql, NULL); /* as the lost session would hold it */
	pthread_create(&thread, NULL, commit_later, f->where);
	assert_true(tx_begin(&tx, s, true, &e));
	q = query_start(s->db, Q_WRITER_GET, &e);
	query_text(&q, s->writer);
	assert_true(query_row(&q));
	assert_int_equal(query_get_int(&q), 4242);
	pthread_join(thread, NULL);
}

static void another_programs_schema_is_refused(void **state)
{
	AUTO_TEXT where = place_new();
	AUTO_DONE(buf) rows = {};
	struct db_options o = {.where = where};
	struct store *s = NULL;
	struct err e = {};

	(void)state;
	place_query(where, "CREATE SCHEMA jobsched; CREATE TABLE jobsched.meta (key TEXT, value TEXT)", NULL);
	assert_false(store_open_with(fixture_ops, &o, &s, &e));
	assert_int_equal(e.kind, ERR_REFUSED);
	place_query(where, "SELECT count(*) FROM pg_tables WHERE schemaname = 'jobsched'", &rows);
	assert_string_equal(rows.data, "1|\n");
	place_drop(where);
}

/* ---- plans ---- */

static bool has_line(const char *plan, const char *what, const char *table)
{
	AUTO_TEXT line = xprintf("%s on %s", what, table);

	return strstr(plan, line) != NULL;
}

/* Plans that are made on empty tables must also suit millions of rows. */
static void check_plan(const char *where, const struct db_query *q)
{
	static const char *const big[] = {"jobs", "runs", "due", "attempts", "job_tags", "notices", "job_health"};
	AUTO_DONE(buf) sql = {};
	AUTO_DONE(buf) plan = {};

	buf_printf(&sql, "PREPARE q AS %s; EXPLAIN (COSTS OFF) EXECUTE q", q->sql);
	for (int i = 0; i < q->n_params; i++)
		buf_printf(&sql, "%s", i ? ", NULL" : "(NULL");
	buf_str(&sql, q->n_params ? ")" : "");
	place_query(where, sql.data, &plan);
	place_query(where, "DEALLOCATE q", NULL);
	for (size_t i = 0; i < ELEMENTS(big); i++)
		if (has_line(plan.data, "Seq Scan", big[i]))
			fail_msg("%s: %s", q->name, plan.data);
	/* A set and a table meet by the table's index, never by comparing each with each. */
	if (strstr(plan.data, "Join Filter") || strstr(plan.data, "Materialize"))
		fail_msg("%s: %s", q->name, plan.data);
	/* Rows compared as a whole are sought by the index as a whole. */
	if (strstr(q->sql, ") > (") && !strstr(plan.data, "Index Cond: (ROW(") && !strstr(plan.data, "Index Cond: ((ROW(") && !strstr(plan.data, "AND (ROW("))
		fail_msg("%s: %s", q->name, plan.data);
	if (strstr(q->name, "_page") && strstr(plan.data, "Sort"))
		fail_msg("%s: %s", q->name, plan.data);
}

static void no_statement_scans_a_table_that_grows(void **state)
{
	struct fixture *f = *state;

	place_query(f->where, place_sql->texts[TEXT_POSTGRES_SETUP], NULL);
	for (int i = 0; i < place_sql->n_queries; i++)
		if (strcmp(place_sql->queries[i].name, "node_held") != 0 && /* few runs, few engines, once per start */
			!text_starts(place_sql->queries[i].name, "check_") && /* 'jobctl db check' looks at everything */
			!text_starts(place_sql->queries[i].name, "restore_"))
			check_plan(f->where, &place_sql->queries[i]);
}

/*
 * After ANALYZE the planner knows that columns have few values, of which one is frequent. A list of a
 * rare value still begins with its own index, not with an index that has the order of the list.
 */
static void lists_of_rare_values_keep_their_index_after_analyze(void **state)
{
	static const char *const lists[] = {"job_page", "job_names", "run_page", "events_after", "events_before", "notice_page", "tag_"};
	struct fixture *f = *state;
	int seen = 0, bad = 0;

	place_query(f->where, "INSERT INTO jobs (id, uid, owner, name, state, revision, segment, queue, priority, spec, digest, created_at, updated_at, removed_at, boots)"
		" SELECT i, 1000 + i % 3, 'owner' || i % 3, 'job' || i, CASE WHEN i % 500 = 0 THEN 1 ELSE 0 END, 1, 0, CASE WHEN i % 500 = 0 THEN 'slow' ELSE 'default' END, 0, '{}', 0, i, i, 0, 0"
		" FROM generate_series(1, 20000) AS i; INSERT INTO job_tags (job, key, value) SELECT id, 'team', CASE WHEN id % 500 = 0 THEN 'a' ELSE 'b' END FROM jobs;"
		"DELETE FROM events; INSERT INTO events (at, uid, owner, who, origin, what, object, job, run, node, result, detail)"
		" SELECT i, 0, i % 3, '', '', CASE WHEN i % 500 = 0 THEN 'job.pause' ELSE 'job.add' END, '', i, 0, '', '', '' FROM generate_series(1, 20000) AS i;"
		"ANALYZE jobs; ANALYZE job_tags; ANALYZE events", NULL);
	place_query(f->where, place_sql->texts[TEXT_POSTGRES_SETUP], NULL);
	/* the start of a parallel worker takes longer than a page */
	place_query(f->where, "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0", NULL);
	for (int i = 0; i < place_sql->n_queries; i++) {
		const struct db_query *q = &place_sql->queries[i];
		AUTO_DONE(buf) plan = {};
		const char *filter;
		bool list = false;

		for (size_t k = 0; k < ELEMENTS(lists); k++)
			list |= text_starts(q->name, lists[k]);
		if (!list)
			continue;
		seen++;
		place_explain(f->where, q, &plan);
		filter = strstr(plan.data, "Filter: ");
		assert_null(strstr(plan.data, "Gather"));
		if (!filter || (!strstr(filter, " = ANY") && !strstr(filter, " = $")))
			continue;
		/* a job has few tags: they may be found by the job */
		if (text_starts(q->name, "tag_") && !strstr(filter, " = ANY"))
			continue;
		print_error("%s: %s\n", q->name, plan.data);
		bad++;
	}
	assert_int_equal(bad, 0);
	assert_true(seen > 30);
}

/* The server of the tests has fsync=off. */
static void unsafe_settings_of_the_server_are_named(void **state)
{
	AUTO_DONE(strv) found = {};
	const char *risk = NULL;

	assert_true(check_unsafe_settings(store_of(state), &found, NULL));
	assert_int_equal(found.n, 1);
	assert_string_equal(found.v[0], "fsync");
	assert_true(check_durability(store_of(state), &risk, NULL));
	assert_non_null(strstr(risk, "'fsync'"));
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(unsafe_settings_of_the_server_are_named),
	STORE_TEST(no_statement_scans_a_table_that_grows),
	STORE_TEST(lists_of_rare_values_keep_their_index_after_analyze),
	STORE_TEST(a_killed_session_is_made_again),
	STORE_TEST(a_store_that_is_away_is_busy_and_comes_back),
	STORE_TEST(cancellations_that_were_rolled_back_leave_no_room_for_more_jobs),
	STORE_TEST(errors_of_the_server_are_classified),
	cmocka_unit_test(an_unreachable_server_is_reported_at_open),
	STORE_TEST(a_server_without_a_setting_is_used_unless_the_setting_is_required),
	cmocka_unit_test(a_silent_server_is_given_up_well_within_the_lease),
	STORE_TEST(a_silent_server_is_passed_over_for_the_next_one),
	STORE_TEST(two_nodes_never_claim_the_same_run),
	STORE_TEST(the_last_two_ends_at_once_finish_the_job),
	cmocka_unit_test(nodes_that_start_together_make_one_schema),
	STORE_TEST(a_commit_still_under_way_is_waited_for),
	cmocka_unit_test(another_programs_schema_is_refused),
};
const struct suite_part store_server_part = {tests, ELEMENTS(tests)};
