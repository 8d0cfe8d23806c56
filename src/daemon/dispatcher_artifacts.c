/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that bring something along: they start when the cache has it. */
#include "base/err.h"
#include "base/text.h"
#include "core/job.h"
#include "daemon/artifact.h"
#include "daemon/dispatcher_parts.h"

void dispatcher_artifact_note(struct flight *f, const struct job_spec *spec)
{
	char key[ARTIFACT_KEY_MAX];

	if (spec->artifact && spec->sha256 && !f->artifact)
		f->artifact = xstrdup(artifact_key(spec->artifact, spec->sha256, key));
}

int dispatcher_artifact_get(struct dispatcher *d, struct flight *f, const struct job_spec *spec)
{
	int tree = artifacts_get(d->o.artifacts, spec->artifact, spec->sha256, f->run->uid);

	dispatcher_artifact_note(f, spec);
	flights_stage(&d->flights, f, tree < 0 ? FLIGHT_FETCHING : FLIGHT_STARTING);
	return tree;
}

bool dispatcher_artifact_used(const struct dispatcher *d, const char *key)
{
	const struct flight *f;

	for (size_t i = 0; (f = map_next(&d->flights.by_run, &i));)
		if (f->stage != FLIGHT_ENDED && text_equal(f->artifact, key))
			return true;
	return false;
}

void dispatcher_artifact_done(struct dispatcher *d, const char *key, const struct err *why)
{
	struct flight *f;

	for (size_t i = 0; (f = map_next(&d->flights.by_run, &i));) {
		if (f->stage != FLIGHT_FETCHING || !text_equal(f->artifact, key))
			continue;
		flights_stage(&d->flights, f, FLIGHT_STARTING);
		if (why)
			dispatcher_end_unstarted(d, f, ATTEMPT_NOT_STARTED, why->msg);
		else if (d->spawner_ready && !d->stopped && d->o.trusted(d->o.arg)) /* it may have taken longer than a lease */
			dispatcher_start_flight(d, f);
		else
			dispatcher_give_back(d, f, 0);
	}
}

void dispatcher_artifacts_stop(struct dispatcher *d)
{
	struct flight *f;

	for (size_t i = 0; (f = map_next(&d->flights.by_run, &i));)
		if (f->stage == FLIGHT_FETCHING)
			dispatcher_give_back(d, f, 0);
}
