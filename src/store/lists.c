/* SPDX-License-Identifier: Apache-2.0 */
/* Frees lists of jobs, runs and attempts. */
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/lists.h"
#include "store/store.h"

void job_list_done(struct job_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		job_free(l->v[i]);
	free(l->v);
	*l = (struct job_list){};
}

void run_list_done(struct run_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		run_free(l->v[i]);
	free(l->v);
	*l = (struct run_list){};
}

void attempt_list_done(struct attempt_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		attempt_free(l->v[i]);
	free(l->v);
	*l = (struct attempt_list){};
}

