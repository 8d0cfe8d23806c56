/* SPDX-License-Identifier: Apache-2.0 */
/* Random cron expressions together with a slow model of what they mean, for tests. */
#pragma once
#include "core/time/schedule.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct zone;

struct random {
	uint64_t state;
};
uint64_t random_next(struct random *r);
int random_below(struct random *r, int n);

/* Written down value by value, as the manual says it, without any of the engine's tricks. */
struct model {
	bool second[60], minute[60], hour[24], day[32], month[13], weekday[7];
	bool last[31], near[32], near_last[31];
	bool nth[6][7], last_weekday[7];
	bool any_year, year[2200];
	bool star_day, star_weekday, wild;
};

/* 'id' is what H is hashed from. */
void random_cron(struct random *r, const char *id, struct buf *text, struct model *m);

/* The first slot after 'after' by trying every wall time; false: none within so many days. */
bool model_next(const struct model *m, const struct schedule_context *c, int64_t after, int days, int64_t *ret);
