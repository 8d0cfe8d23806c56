/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the jobs of crontabs in step with the files, and decides whether they run. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "daemon/crontab/table_plan.h"
#include <stdbool.h>
#include <stdint.h>

struct crontabs;
struct dispatcher;
struct spawner_link;
struct store_thread;

struct crontabs_options { /* everything is borrowed */
	const struct clock *clock;
	struct store_thread *store;
	struct spawner_link *spawner;
	struct dispatcher *dispatcher;
	void (*on_change)(void *arg); /* jobs may start that were withheld before */
	void *arg;
	int64_t mode;  /* enum config_crontabs */
	bool shared;   /* nodes of several machines use the store: crontabs are not read */
};

struct crontabs *crontabs_new(const struct crontabs_options *o);
void crontabs_free(struct crontabs *c); /* after the store threads have ended; NULL is fine */
AUTO_DEFINE(crontabs);
void crontabs_start(struct crontabs *c);            /* the store can be used */
void crontabs_set_mode(struct crontabs *c, int64_t mode);
void crontabs_stop(struct crontabs *c);

struct crontabs_status {
	int64_t mode;              /* enum config_crontabs */
	int64_t configured;        /* the same, of the configuration: a shared store switches the tables off */
	const char *cron, *anacron; /* other programs that run the tables; NULL: none */
	bool held;                 /* 'on', but another cron daemon runs */
	bool read;                 /* the tables were read */
	const char *parser;        /* debian, cronie, strict; NULL: not known */
	const char *problem;       /* why the jobs are not in step, or the tables cannot be used; NULL: none */
	const struct table_states *tables; /* borrowed until control returns to the loop */
};
void crontabs_status(const struct crontabs *c, struct crontabs_status *ret);

/* The reasons recorded for slots that do not run. */
#define CRONTABS_SHADOW_REASON "shadow"
#define CRONTABS_HELD_REASON "held"
