/* SPDX-License-Identifier: Apache-2.0 */
/* Warrants: when the daemon answers that one is needed, jobctl requests it from the spawner and repeats the request. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct ctl;
struct err;
struct ref;

bool warrant_supply_needed(const struct err *e); /* the daemon's answer says so */

/* The request as it was refused. */
struct warrant_supply_request {
	const char *method, *path;
	const json_t *body; /* NULL: none */
};
/*
 * The same body with a warrant. The order is computed here. What was typed is taken as typed. What comes from the daemon (the rest of
 * a changed job, a template) is taken only if the spawner finds it approved before, and then it is shown and confirmed.
 */
bool warrant_supply(struct ctl *c, const struct warrant_supply_request *w, json_t **ret, struct err *e);

/* Approves a job as the daemon has it, after showing it; puts the warrant into 'patch'. */
bool warrant_supply_approve(struct ctl *c, const struct ref *typed, const json_t *job, json_t *patch, struct err *e);
