/* SPDX-License-Identifier: Apache-2.0 */
/* Delays the start of a run until jobsched-net has its artifact. */
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "daemon/artifact/artifact_requests.h"
#include "daemon/schedule/dispatcher_private.h"
#include <inttypes.h>
#include <unistd.h>

/* Before an artifact that is not available now is requested again. */
#define BUSY_DELAY (5 * USEC_SEC)

void dispatcher_artifact_note(struct active_run *a, const struct job_spec *spec)
{
	if (!spec->artifact || !spec->sha256 || a->artifact)
		return;
	a->artifact = xstrdup(spec->artifact);
	a->artifact_sum = xstrdup(spec->sha256);
}

static struct artifact_user artifact_user_of(const struct active_run *a)
{
	return (struct artifact_user){.run = a->run->id,
		.fence = a->run->fence,
		.uid = owner_uid(a->run->uid),
		.url = a->artifact,
		.sha256 = a->artifact_sum};
}

bool dispatcher_artifact_get(struct dispatcher *d, struct active_run *a,
	const struct job_spec *spec, struct err *e)
{
	struct artifact_user u;

	dispatcher_artifact_note(a, spec);
	u = artifact_user_of(a);
	if (!artifact_requests_get(d->o.artifacts, &u, e))
		return false;
	active_runs_set_stage(&d->active_runs, a, ACTIVE_RUN_FETCHING);
	return true;
}

static void on_active_run_removed(struct active_run *a, void *arg)
{
	struct dispatcher *d = arg;

	if (a->call && a->stage == ACTIVE_RUN_FETCHING)
		dispatcher_call_cancel(d, a);
	if (a->artifact && d->o.artifacts)
		artifact_requests_release(d->o.artifacts, a->run->id, a->run->fence);
}

void dispatcher_artifacts_watch(struct dispatcher *d)
{
	d->active_runs.on_remove = on_active_run_removed;
	d->active_runs.arg = d;
}

void dispatcher_artifacts_hold(struct dispatcher *d)
{
	const struct active_run *a;

	for (size_t i = 0; (a = map_next(&d->active_runs.by_run, &i));)
		if (a->artifact && a->stage != ACTIVE_RUN_FETCHING && a->stage != ACTIVE_RUN_HELD) {
			struct artifact_user u = artifact_user_of(a);

			artifact_requests_hold(d->o.artifacts, &u);
		}
}

void dispatcher_artifact_file(struct dispatcher *d, int64_t run, int64_t fence, int socket)
{
	const struct active_run *a = active_runs_get(&d->active_runs, run, fence);
	/* if it is closed unused, jobsched-net reports that the file could not be opened */
	AUTO_FD to = socket;
	struct err e = {};

	if (!a || a->stage != ACTIVE_RUN_FETCHING || !spawner_link_id(d->o.spawner))
		return;
	if (!spawner_link_open_file(d->o.spawner,
		    &(struct spawn_file){.run = run,
			    .fence = fence,
			    .uid = owner_uid(a->run->uid),
			    .owner = a->run->owner,
			    .path = a->artifact + sizeof("file:") - 1,
			    .socket = to},
		    &e))
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = a->run->job, .run = run, .trace = a->trace.id},
			"%s", e.msg);
}

static void give_back_busy(struct dispatcher *d, struct active_run *a, const struct err *why)
{
	log_line(log_repeat(&d->artifact_busy, clock_boot(d->o.clock)),
		&(struct log_about){.job = a->run->job, .run = a->run->id, .trace = a->trace.id},
		"run %" PRId64 " waits for its artifact, trying again in %d s: %s", a->run->id,
		(int)(BUSY_DELAY / USEC_SEC), why->msg);
	dispatcher_give_back(d, a, BUSY_DELAY);
}

void dispatcher_artifact_done(struct dispatcher *d, int64_t run, int64_t fence, int tree,
	const struct err *why)
{
	struct active_run *a = active_runs_get(&d->active_runs, run, fence);
	AUTO_FD fd = tree;

	if (!a || a->stage != ACTIVE_RUN_FETCHING)
		return;
	active_runs_set_stage(&d->active_runs, a, ACTIVE_RUN_STARTING);
	if (why && why->kind == ERR_BUSY) {
		give_back_busy(d, a, why);
	} else if (why) {
		dispatcher_end_unstarted(d, a, ATTEMPT_NOT_STARTED, why->msg);
	} else if (spawner_link_ready(d->o.spawner) && !d->stopped && d->o.trusted(d->o.arg)) {
		a->tree = STEAL_FD(fd);
		dispatcher_start_run(d, a);
	} else {
		/* the download may have taken longer than the lease */
		dispatcher_give_back(d, a, 0);
	}
}

void dispatcher_artifacts_stop(struct dispatcher *d)
{
	struct active_run *a;

	for (size_t i = 0; (a = map_next(&d->active_runs.by_run, &i));)
		if (a->stage == ACTIVE_RUN_FETCHING)
			dispatcher_give_back(d, a, 0);
}
