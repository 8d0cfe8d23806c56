/* SPDX-License-Identifier: Apache-2.0 */
/* Overlap permits: how many runs of a job may be active at a time. */
#pragma once
#include <stdbool.h>

struct err;
struct store;

bool permits_free(struct store *s, const char *jobs, struct err *e); /* of ended runs of these jobs (a JSON array of ids) */
/* The same; as many waiting runs return to their lanes. */
bool permits_settle(struct store *s, const char *jobs, struct err *e);
