/* SPDX-License-Identifier: Apache-2.0 */
/* A new store per test on the backend of this program, and functions that make operations. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "core/job/event.h"
#include "store/ops/batch.h"
#include "store/ops/op.h"
#include "store/ops/run/plans.h"
#include "store/store_private.h"
#include "unit/unit.h"

#define T0 INT64_C(1800000000000000) /* the current time of the tests */
#define NODE "node-one-engine"
#define SPAWNER "spawner-one"

struct fixture {
	char *where;         /* of this test's store */
	struct store *store; /* open for writing */
};

/* Implemented once per engine. */
extern const struct db_ops *const fixture_ops;
extern const struct db_sql *const place_sql;
int place_group_setup(void **state);
int place_group_teardown(void **state);
char *place_new(void);               /* an address without a store; caller frees */
void place_drop(const char *where);  /* deletes the store */
void place_clear(const char *where); /* empties the tables; numbers begin at 1 again */
void place_query(const char *where, const char *sql, struct buf *out); /* appends rows as text; out may be NULL */
/* Appends the plan of a statement, one step per line, as chosen for large tables. */
void place_explain(const char *where, const struct db_query *q, struct buf *out);
void place_queries(const char *where, const char *const *sql, size_t n, struct buf *out); /* ... one after the other */

void place_server_stop(void);        /* PostgreSQL only */
void place_server_start(void);       /* waits until it answers */

/* cmocka's setup and teardown of one test. */
int fixture_setup(void **state);     /* opens the store and the node NODE */
int fixture_teardown(void **state);
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

struct store *open_or_fail(const char *where, bool read_only);
void reopen(struct fixture *f);
struct store *store_of(void **state);
const char *where_of(void **state);

/* Applies one operation and fails the test unless the batch as such worked. Returns op->ok. */
bool apply_one(struct store *s, struct op *op);
struct batch_wake apply_all(struct store *s, struct op **ops, size_t n);

/* Operations, to be freed by the caller. Texts are borrowed. */
struct op *op_add(const char *name, const char *key, const char *spec);
struct op *op_due(const char *name, usec_t slot);                  /* a job with a schedule, and its next slot */
struct op *op_plan(plan_fn *fn, void *arg, usec_t horizon);        /* of all segments, at T0 */
struct op *op_claim(size_t room, usec_t now);
struct op *op_started(const struct run *r, usec_t at);
struct op *op_ended(const struct run *r, enum attempt_outcome outcome, usec_t at); /* judged by judge_attempt */
struct op *op_job_cancel(enum op_kind kind, int64_t id);
struct op *op_node_open(const char *node, const char *name, const char *spawner);

int64_t add_job(struct store *s, const char *name);            /* due at once; returns its number */
int64_t add_due(struct store *s, const char *name, usec_t slot);
struct run *claim_one(struct store *s, usec_t now);            /* NULL: nothing due; caller frees */
struct run *get_run(struct store *s, int64_t id);
struct job *get_job(struct store *s, int64_t id);
void start_run(struct store *s, const struct run *r, usec_t at);
void end_run(struct store *s, const struct run *r, enum attempt_outcome outcome, usec_t at);

/* Slots every second up to the horizon; 'arg' is the last one there is (usec_t *). */
void every_second(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg);

/* Checks that the counters equal the numbers of rows. */
void assert_counts_true(struct store *s);
