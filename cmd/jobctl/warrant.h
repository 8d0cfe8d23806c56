/* SPDX-License-Identifier: Apache-2.0 */
/* Warrants: where the daemon says that one is needed, the spawner is asked for it, and the request is sent again. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct ctl;
struct err;

bool warrant_is_missing(const struct err *e); /* the daemon's answer says so */

/* A request as it was refused. What it asks for is worked out here, from what we were given and not from the daemon. */
struct warrant_case {
	const char *method, *path;
	const json_t *body; /* NULL: none */
};
/* The same body with a warrant in it. What the daemon must be asked for is taken only if it was approved before. */
bool warrant_supply(struct ctl *c, const struct warrant_case *w, json_t **ret, struct err *e);
