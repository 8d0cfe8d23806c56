/* SPDX-License-Identifier: Apache-2.0 */
/* The environment a job's command gets. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct job_spec;

/* NAME=VALUE whose name says that the value is nobody's business. */
bool job_env_secret(const char *pair);
char *job_env_masked(const char *pair, bool reveal); /* caller frees */

/* One NAME=VALUE a line. What is known only at the start of a run is shown as <…> when 'run' is NULL. */
void job_env_put(const json_t *job, const json_t *run, const struct job_spec *s, bool reveal, bool escape,
	struct buf *out);
