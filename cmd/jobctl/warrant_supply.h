/* SPDX-License-Identifier: Apache-2.0 */
/* Obtains a warrant from the spawner if the daemon requires one. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct ctl;
struct err;
struct ref;

/* The daemon refused a request because of a missing warrant. */
bool warrant_supply_needed(const struct err *e);

/* The request that was refused. */
struct warrant_supply_request {
	const char *method, *path;
	const json_t *body; /* NULL: none */
};
/*
 * *ret is a copy of the body with a warrant. jobctl computes what is to be approved. What the user
 * typed is accepted. What comes from the daemon (the rest of a changed job, a template) is accepted
 * only if the spawner finds that it was approved before; the user is shown the result and asked.
 */
bool warrant_supply(struct ctl *c, const struct warrant_supply_request *w, json_t **ret,
	struct err *e);

/*
 * Adds a warrant to a complete definition that the user has written; nothing of it comes from the
 * daemon.
 */
bool warrant_supply_definition(struct ctl *c, const char *owner /* NULL: the caller */,
	json_t *definition, struct err *e);

/* Shows a job as stored by the daemon, asks for approval, and adds the warrant to 'patch'. */
bool warrant_supply_approve(struct ctl *c, const struct ref *typed, const json_t *job,
	json_t *patch, struct err *e);
