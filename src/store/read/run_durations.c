/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the durations of the newest runs of a job. */
#include "store/read/run_durations.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/store_private.h"
#include "store/tx.h"

static bool read_samples(struct store *s, int64_t job, struct duration_sample *ret, size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_DURATIONS, e);

	*ret_n = 0;
	query_int(&q, job);
	query_int(&q, DURATIONS_RUNS);
	while (query_row(&q)) {
		usec_t took = query_get_int(&q);
		int64_t state = query_get_int(&q);

		if (took >= 0 && *ret_n < DURATIONS_RUNS)
			ret[(*ret_n)++] = (struct duration_sample){took, state == RUN_SUCCEEDED};
	}
	return !q.failed;
}

bool run_durations_read(struct store *s, struct job *const *v, size_t n, struct err *e)
{
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct duration_sample samples[DURATIONS_RUNS];
		size_t found;

		if (!read_samples(s, v[i]->id, samples, &found, e))
			return false;
		durations_compute(samples, found, &v[i]->durations);
	}
	return tx_commit(&tx, e);
}
