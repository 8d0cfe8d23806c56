/* SPDX-License-Identifier: Apache-2.0 */
/* Environment that a job's command will receive. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct job_spec;
struct strv;

bool job_env_secret(const char *pair); /* the name of NAME=VALUE looks like that of a secret */
/* The value of a secret becomes ***; caller frees. */
char *job_env_masked(const char *pair, bool reveal);

/*
 * The variables, in the order of the spawner. Without a run, values that are known only at its start
 * are <…>.
 */
void job_env_list(const json_t *job, const json_t *run /* NULL: none */, const struct job_spec *s,
	struct strv *ret);
bool job_env_known(const char *pair); /* the value is not such a <…> */
/*
 * Appends one NAME=VALUE per line. Without a run, values that are known only at its start are shown
 * as <…>.
 */
void job_env_put(const json_t *job, const json_t *run, const struct job_spec *s, bool reveal,
	bool escape, struct buf *out);
