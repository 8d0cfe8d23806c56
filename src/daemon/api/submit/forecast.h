/* SPDX-License-Identifier: Apache-2.0 */
/* Preview of a submitted schedule: warnings, description, next times. */
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
	json_t *findings;  /* owned: array of {code, message}; NULL: not checked */
	char *explain;     /* owned; NULL: not requested */
	usec_t next[FORECAST_SLOTS];
	size_t n;
};
void forecast_done(struct forecast *f);

/* 'undecided': the job has no name or number yet, so the value of H is not known. */
void forecast_lint(struct forecast *f, const struct schedule_set *set, const struct job_spec *spec,
	bool undecided);
/* Adds a warning for each condition that this machine can never meet. */
void forecast_machine(struct forecast *f, const struct job_spec *spec,
	const struct machine_figures *machine);
/*
 * Services of this node that notices and artifacts need. forecast_services() adds a warning for
 * each that is not available.
 */
struct forecast_services {
	const char *sendmail; /* mail program; NULL: not checked */
	const char *net_down; /* why jobsched-net is not connected; NULL: it is */
};
void forecast_services(struct forecast *f, const struct job_spec *spec,
	const struct forecast_services *m);
void forecast_slot_density(struct forecast *f, usec_t slot, int64_t jobs);
void forecast_preview(struct forecast *f, const struct schedule_set *set,
	const struct job_spec *spec, usec_t now, bool undecided);

/* Adds "findings" to the job's object, and "explain" and "next" if they were requested. */
void forecast_write_json(const struct forecast *f, json_t *job);
