/* SPDX-License-Identifier: Apache-2.0 */
/* Operations for the tests of pauses and triggers. */
#pragma once
#include "core/job/pause.h"
#include "unit/store/store_suite.h"

#define HOUR USEC_HOUR
#define ANN 1000 /* owns the jobs; eve, who has uid 7, is an administrator */

/* Adds a job with a queued run now and later slots. */
int64_t add_recurring(struct store *s, const char *name, const struct strv *tags);
struct op *op_pause(int64_t job, usec_t at, usec_t until);
struct op *op_scope(enum pause_scope scope, const char *key, int64_t uid, usec_t until);
struct op *op_resume(int64_t job, usec_t now);
struct op *op_unscope(enum pause_scope scope, const char *key, int64_t uid);
struct op *op_trigger(int64_t job, usec_t now);
bool pause_job(struct store *s, int64_t job, usec_t at, usec_t until);
void put_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid);
size_t drop_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid);
enum job_state state_of(struct store *s, int64_t id);
/* Claims, and checks the state and reason of this run afterwards. */
void assert_claimed(struct store *s, int64_t run, usec_t now, enum run_state state, const char *reason);
int64_t only_run(struct store *s, int64_t job);
