/* SPDX-License-Identifier: Apache-2.0 */
/* What a submitted schedule will do: what is doubtful about it, its words and its first instants. */
#pragma once
#include "base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct job_spec;
struct machine_figures;
struct schedule_set;

#define FORECAST_SLOTS 5

struct forecast {
	json_t *findings;  /* owned: array of {code, message}; NULL: nobody looked */
	char *explain;     /* owned; NULL: nobody asked */
	usec_t next[FORECAST_SLOTS];
	size_t n;
};
void forecast_done(struct forecast *f);

/* 'undecided': the job has neither a name nor a number yet, so nobody knows what H will be. */
void forecast_lint(struct forecast *f, const struct schedule_set *set, const struct job_spec *spec, bool undecided);
/* Conditions that this machine can never meet. */
void forecast_machine(struct forecast *f, const struct job_spec *spec, const struct machine_figures *machine);
/* Channels of notices, and artifacts, that could not be served at the moment. */
struct forecast_services {
	const char *sendmail; /* the mail program; NULL: not looked at */
	const char *net_down; /* why jobsched-net is not running; NULL: it is */
};
void forecast_services(struct forecast *f, const struct job_spec *spec, const struct forecast_services *m);
void forecast_slot_density(struct forecast *f, usec_t slot, int64_t jobs);
void forecast_preview(struct forecast *f, const struct schedule_set *set, const struct job_spec *spec, usec_t now,
	bool undecided);

/* Into the job's object: "findings" always, "explain" and "next" where somebody asked. */
void forecast_write_json(const struct forecast *f, json_t *job);
