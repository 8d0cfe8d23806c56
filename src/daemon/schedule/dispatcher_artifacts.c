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

void dispatcher_artifact_note(struct active_run *f, const struct job_spec *spec)
{
	if (!spec->artifact || !spec->sha256 || f->artifact)
		return;
	f->artifact = xstrdup(spec->artifact);
	f->artifact_sum = xstrdup(spec->sha256);
}

static struct artifact_user artifact_user_of(const struct active_run *f)
{
	return (struct artifact_user){.run = f->run->id,
		.fence = f->run->fence,
		.uid = owner_uid(f->run->uid),
		.url = f->artifact,
		.sha256 = f->artifact_sum};
}

bool dispatcher_artifact_get(struct dispatcher *d, struct active_run *f,
	const struct job_spec *spec, struct err *e)
{
	struct artifact_user u;

	dispatcher_artifact_note(f, spec);
	u = artifact_user_of(f);
	if (!artifact_requests_get(d->o.artifacts, &u, e))
		return false;
	active_runs_set_stage(&d->active_runs, f, ACTIVE_RUN_FETCHING);
	return true;
}

static void on_active_run_removed(struct active_run *f, void *arg)
{
	const struct dispatcher *d = arg;

	if (f->artifact && d->o.artifacts)
		artifact_requests_release(d->o.artifacts, f->run->id, f->run->fence);
}

void dispatcher_artifacts_watch(struct dispatcher *d)
{
	d->active_runs.on_remove = on_active_run_removed;
	d->active_runs.arg = d;
}

void dispatcher_artifacts_hold(struct dispatcher *d)
{
	const struct active_run *f;

	for (size_t i = 0; (f = map_next(&d->active_runs.by_run, &i));)
		if (f->artifact && f->stage != ACTIVE_RUN_FETCHING && f->stage != ACTIVE_RUN_HELD) {
			struct artifact_user u = artifact_user_of(f);

			artifact_requests_hold(d->o.artifacts, &u);
		}
}

void dispatcher_artifact_file(struct dispatcher *d, int64_t run, int64_t fence, int socket)
{
	const struct active_run *f = active_runs_get(&d->active_runs, run, fence);
	/* if it is closed unused, jobsched-net reports that the file could not be opened */
	AUTO_FD to = socket;
	struct err e = {};

	if (!f || f->stage != ACTIVE_RUN_FETCHING || !spawner_link_id(d->o.spawner))
		return;
	if (!spawner_link_open_file(d->o.spawner,
		    &(struct spawn_file){.run = run,
			    .fence = fence,
			    .uid = owner_uid(f->run->uid),
			    .owner = f->run->owner,
			    .path = f->artifact + sizeof("file:") - 1,
			    .socket = to},
		    &e))
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = f->run->job, .run = run},
			"%s", e.msg);
}

static void give_back_busy(struct dispatcher *d, struct active_run *f, const struct err *why)
{
	log_line(log_repeat(&d->artifact_busy, clock_boot(d->o.clock)),
		&(struct log_about){.job = f->run->job, .run = f->run->id},
		"run %" PRId64 " waits for its artifact, trying again in %d s: %s", f->run->id,
		(int)(BUSY_DELAY / USEC_SEC), why->msg);
	dispatcher_give_back(d, f, BUSY_DELAY);
}

void dispatcher_artifact_done(struct dispatcher *d, int64_t run, int64_t fence, int tree,
	const struct err *why)
{
	struct active_run *f = active_runs_get(&d->active_runs, run, fence);
	AUTO_FD fd = tree;

	if (!f || f->stage != ACTIVE_RUN_FETCHING)
		return;
	active_runs_set_stage(&d->active_runs, f, ACTIVE_RUN_STARTING);
	if (why && why->kind == ERR_BUSY) {
		give_back_busy(d, f, why);
	} else if (why) {
		dispatcher_end_unstarted(d, f, ATTEMPT_NOT_STARTED, why->msg);
	} else if (spawner_link_ready(d->o.spawner) && !d->stopped && d->o.trusted(d->o.arg)) {
		f->tree = STEAL_FD(fd);
		dispatcher_start_run(d, f);
	} else {
		/* the download may have taken longer than the lease */
		dispatcher_give_back(d, f, 0);
	}
}

void dispatcher_artifacts_stop(struct dispatcher *d)
{
	struct active_run *f;

	for (size_t i = 0; (f = map_next(&d->active_runs.by_run, &i));)
		if (f->stage == ACTIVE_RUN_FETCHING)
			dispatcher_give_back(d, f, 0);
}
