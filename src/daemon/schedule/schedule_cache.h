/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled schedules of jobs, and what they say about due slots; used by one thread, inside a transaction. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due_job;
struct late_job;
struct planned;
struct timetable;

struct timetable *timetable_new(void);
void timetable_free(struct timetable *t);
AUTO_DEFINE(timetable);

/* Schedules are compiled anew and zones read again. May be called from any thread. */
void timetable_forget(struct timetable *t);

/* plan_fn and late_fn of store/ops/op.h; 'arg' is the timetable. */
void timetable_plan(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg);
size_t timetable_missed(const struct late_job *late, usec_t now, bool *ret_caught_up, void *arg);
