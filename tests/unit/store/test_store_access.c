/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the access paths: no statement scans a table that grows with the number of jobs, runs or
 * events, unless it is listed here with a reason.
 */
#include "base/text.h"
#include "unit/store/store_suite.h"
#include <string.h>

/*
 * Names that may be scanned: tables whose size does not depend on the number of jobs, runs or
 * events, and the rows that a statement was given.
 */
static const char *const small[] = {"pauses", "pauses_past", "nodes", "segments", "segments_1", "writers", "leases", "relays",
	"counters", "tokens", "tokens_1", "sqlite_sequence", "step", "scopes", "single", "later", "ordered", "lane", "(subquery-1)",
	"limits", "relay_parts", "same", "own", "owner", "waiting", "oldest", "newest", "first", "j0", "j1", "j2", "j3", "j4"};

/* Statements that read a whole table or index, and why that is right. */
static const struct {
	const char *query, *why;
} scans[] = {
	{"due_first", "reads the first entry of each index"},
	{"boot_jobs", "reads the index of the jobs that start at boot"},
	{"lanes", "skips from lane to lane in the index"},
	{"pauses_now", "reads the first entry of the index of pauses that were set in advance"},
	{"notices_resume", "at the start of a node: the notices that it was sending"},
	{"nodes_gone", "the nodes, by name"},
	{"lease_facts", "reads the first entry of the index"},
	{"last_seen", "reads the last entry of the index"},
	{"pauses_past_ready", "reads the first entry of the index"},
	{"pauses_past_drop", "reads the first entry of the index"},
	{"notices_any", "reads the first row of an index"},
	{"notices_owners", "skips from owner to owner in the index"},
	{"kept_outputs", "reads a page of the index in its order"},
	{"events_prune", "reads the oldest rows, as many as given"},
	{"events_holder", "the sessions of the server"},
	{"job_names_all", "reads the newest 10,000 rows"},
	{"run_states_over", "reads the index of the stored states, which are those of runs that are tried again"},
	{"check_store", "'jobctl db check' reads everything"},
	{"check_runs", "'jobctl db check' reads everything"},
	{"check_jobs", "'jobctl db check' reads everything"},
	{"check_owners", "'jobctl db check' reads everything"},
	{"check_active", "'jobctl db check' reads everything"},
	{"check_outputs", "'jobctl db check' reads everything"},
	{"check_dead", "'jobctl db check' reads everything"},
	{"chain_ancestors", "reads the rows of its own recursion"},
	{"metric_jobs_tagged", "reads as many rows of the index as given"},
	{"metric_jobs_all", "reads as many rows of the index as given"},
	{"restore_runs", "a restore changes every open run"},
	{"restore_missed", "a restore changes every open run"},
	{"restore_attempts", "a restore changes every open attempt"},
	{"restore_places", "a restore removes every permit"},
};

static bool scan_allowed(const char *query)
{
	for (size_t i = 0; i < ELEMENTS(scans); i++)
		if (strcmp(scans[i].query, query) == 0)
			return true;
	return false;
}

/* Whether the word at 'at' names a table that may be scanned. */
static bool is_small(const char *at)
{
	size_t len = strcspn(at, " |");

	for (size_t i = 0; i < ELEMENTS(small); i++)
		if (len == strlen(small[i]) && strncmp(at, small[i], len) == 0)
			return true;
	return false;
}

/*
 * Returns the line of step 'i' that begins with 'what', or NULL. PostgreSQL prints such lines below the step, with a larger
 * indentation and before the next step.
 */
static const char *line_below(char *const *steps, size_t n, size_t i, const char *what)
{
	for (size_t k = i + 1; k < n && !strstr(steps[k], "->"); k++)
		if (strstr(steps[k], what))
			return steps[k];
	return NULL;
}

/* 'IS NOT NULL' alone is no condition: it is true for every entry of the index. */
static bool has_index_condition(char *const *steps, size_t n, size_t i)
{
	const char *condition = line_below(steps, n, i, "Index Cond:");

	return condition && (!strstr(condition, " IS NOT NULL)|") || strstr(condition, " AND "));
}

/*
 * Whether step 'i' reads one row at an end of an index, for max() or min(): PostgreSQL plans these as a subquery with a limit
 * of one row. Versions before 17 add the condition 'IS NOT NULL'.
 */
static bool reads_end_of_index(char *const *steps, size_t n, size_t i, const char *sql)
{
	return i >= 2 && (strstr(sql, "max(") || strstr(sql, "min(")) && strstr(steps[i - 1], "->  Limit|") &&
		strstr(steps[i - 2], "InitPlan ") && !line_below(steps, n, i, "Filter:");
}

/*
 * Whether a step of a plan reads a large table or index completely. An index that SQLite makes for one statement is such a
 * scan, too. PostgreSQL avoids a sequential scan here, but then it reads a whole index: an index scan without a condition.
 */
static bool scans_large_table(char *const *steps, size_t n, size_t i, const char *sql)
{
	static const char *const marks[] = {"SCAN ", "Seq Scan on "};
	const char *at;

	for (size_t m = 0; m < ELEMENTS(marks); m++) {
		at = strstr(steps[i], marks[m]);
		if (at)
			return !strstr(at, "VIRTUAL TABLE") && !strstr(at, "CONSTANT ROW") && !is_small(at + strlen(marks[m]));
	}
	at = strstr(steps[i], "SEARCH ");
	if (at && strstr(at, "USING AUTOMATIC"))
		return !is_small(at + strlen("SEARCH "));
	if (!strstr(steps[i], "Index Scan") && !strstr(steps[i], "Index Only Scan"))
		return false;
	at = strstr(steps[i], " on ");
	return at && !is_small(at + strlen(" on ")) && !has_index_condition(steps, n, i) && !reads_end_of_index(steps, n, i, sql);
}

#define STEPS_MAX 512

/* Counts the steps of the plan of a query that scan a large table; prints them if 'print'. */
static int scans_of(const struct fixture *f, const struct db_query *q, bool print)
{
	AUTO_DONE(buf) plan = {};
	char *steps[STEPS_MAX], *save = NULL;
	size_t n = 0;
	int bad = 0;

	buf_str(&plan, "");
	place_explain(f->where, q, &plan);
	for (char *step = strtok_r(plan.data, "\n", &save); step; step = strtok_r(NULL, "\n", &save)) {
		assert_true(n < STEPS_MAX);
		steps[n++] = step;
	}
	for (size_t i = 0; i < n; i++)
		if (scans_large_table(steps, n, i, q->sql)) {
			bad++;
			if (print)
				print_error("%s: %s\n", q->name, steps[i]);
		}
	return bad;
}

static void every_statement_uses_an_index_of_a_large_table(void **state)
{
	struct fixture *f = *state;
	int bad = 0;

	for (int i = 0; i < place_sql->n_queries; i++)
		if (!scan_allowed(place_sql->queries[i].name))
			bad += scans_of(f, &place_sql->queries[i], true);
	assert_int_equal(bad, 0);
}

/* An entry for a statement that is gone would excuse a new statement of that name. */
static void every_exception_is_the_name_of_a_statement(void **state)
{
	(void)state;
	for (size_t k = 0; k < ELEMENTS(scans); k++) {
		bool found = false;

		for (int i = 0; i < place_sql->n_queries && !found; i++)
			found = strcmp(place_sql->queries[i].name, scans[k].query) == 0;
		if (!found)
			fail_msg("there is no statement '%s'", scans[k].query);
	}
}

/* Few jobs start at boot or belong to a set of definitions; the others must not be read to find them. */
static void rare_jobs_are_found_by_their_own_index(void **state)
{
	static const char *const queries[] = {"boot_jobs", "applied_members"};
	struct fixture *f = *state;

	for (int i = 0; i < place_sql->n_queries; i++)
		for (size_t k = 0; k < ELEMENTS(queries); k++) {
			AUTO_DONE(buf) plan = {};

			if (strcmp(place_sql->queries[i].name, queries[k]) != 0)
				continue;
			place_explain(f->where, &place_sql->queries[i], &plan);
			assert_null(strstr(plan.data, "jobs_state"));
			assert_null(strstr(plan.data, "jobs_uid_state"));
		}
}

/* The lists: their rows are read in the order of an index, so a page costs the same at any size. */
static void no_list_sorts_its_rows(void **state)
{
	static const char *const lists[] = {"job_page", "job_sort_", "run_page", "events_before", "events_after", "dead_page"};
	struct fixture *f = *state;
	int bad = 0, seen = 0;

	for (int i = 0; i < place_sql->n_queries; i++) {
		const struct db_query *q = &place_sql->queries[i];
		AUTO_DONE(buf) plan = {};
		bool list = false;

		for (size_t k = 0; k < ELEMENTS(lists); k++)
			list |= strncmp(q->name, lists[k], strlen(lists[k])) == 0;
		if (!list)
			continue;
		seen++;
		place_explain(f->where, q, &plan);
		if (strstr(plan.data, "TEMP B-TREE FOR") || strstr(plan.data, "Sort Key")) {
			print_error("%s sorts:\n%s", q->name, plan.data);
			bad++;
		}
	}
	assert_true(seen > 30);
	assert_int_equal(bad, 0);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(every_statement_uses_an_index_of_a_large_table),
	STORE_TEST(every_exception_is_the_name_of_a_statement),
	STORE_TEST(no_list_sorts_its_rows),
	STORE_TEST(rare_jobs_are_found_by_their_own_index),
};
const struct suite_part store_access_part = {tests, ELEMENTS(tests)};
