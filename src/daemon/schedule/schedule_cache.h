/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of compiled schedules. Used by the store writer, inside a transaction. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due_job;
struct job_spec;
struct late_job;
struct planned;
struct schedule_cache;

struct schedule_cache *schedule_cache_new(void);
void schedule_cache_free(struct schedule_cache *t);
AUTO_DEFINE(schedule_cache);

/* Compiles schedules and reads time zones again. May be called from any thread. */
void schedule_cache_invalidate(struct schedule_cache *t);

/*
 * The first slot from 'from' on of a new job without a name, whose number is the seed of H; false: there is none, or it cannot be
 * computed.
 */
struct schedule_seed {
	int64_t job;
	usec_t created_at;
};
bool schedule_cache_first_slot(struct schedule_cache *t, const struct job_spec *spec, const struct schedule_seed *seed, usec_t from,
	usec_t *ret);

/* plan_fn and late_fn of store/ops/op.h; 'arg' is the struct schedule_cache. */
void schedule_cache_plan(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret,
	void *arg);
size_t schedule_cache_missed(const struct late_job *late, usec_t now, bool *ret_caught_up,
	void *arg);
