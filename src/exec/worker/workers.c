/* SPDX-License-Identifier: Apache-2.0 */
/* The set of all workers: lookup, reports, deadlines, lease of the node. */
#include "exec/worker/workers.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/child/launch.h"
#include "exec/child/sandbox.h"
#include "exec/proto/frame.h"
#include "exec/worker/orphans.h"
#include "exec/worker/procfs.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/worker_state.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FDS_PER_WORKER 9 /* pidfd, pipe, output file, control group and its events, notify pipe and socket, results, gate */
/* for the spawner itself, its connections and the descriptors that they pass */
#define FDS_RESERVED 48

bool workers_init(struct workers *ws, int ep, int output_dir, const char *spawner,
	struct cgroups *groups, struct err *e)
{
	struct rlimit raised;

	*ws = (struct workers){.spool = {.pipe.fd = -1, .pidfd = -1},
		.ep = ep,
		.output_dir = output_dir,
		.pid = getpid(),
		.uid = geteuid(),
		.notify_dir = -1,
		.spawner = spawner,
		.groups = groups};
	ws->outbox_end = &ws->outbox;
	ws->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ws->children = procfs_children_open();
	if (ws->null < 0 || ws->children < 0)
		return err_errno(e, ws->null < 0 ? errno : -ws->children, "could not open '%s'",
			ws->null < 0 ? "/dev/null" : "/proc/self/task/…/children");
	if (getrlimit(RLIMIT_NOFILE, &ws->nofile) < 0)
		return err_errno(e, errno, "could not read the limit of open files");
	raised = (struct rlimit){ws->nofile.rlim_max, ws->nofile.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
		raised = ws->nofile;
	ws->running_max = raised.rlim_cur > FDS_RESERVED
		? (raised.rlim_cur - FDS_RESERVED) / FDS_PER_WORKER
		: 0;
	ws->lang = getenv("LANG");
	ws->chunk = xcalloc(1, WORKER_CHUNK);
	launchers_init(&ws->launchers, ep, ws);
	return launch_stacks_new(&ws->stacks, e);
}

bool workers_open_sandboxes(struct workers *ws, const struct sandbox_profiles *profiles,
	bool report, const char *init, struct err *e)
{
	if (!sandbox_set_open(&ws->sandboxes, profiles, report, init, ws->stacks, e))
		return false;
	for (size_t i = 0; i < ws->sandboxes->n; i++) {
		const struct sandbox_prepared *f = &ws->sandboxes->v[i];

		if (f->missing)
			log_warning("sandbox profile '%s' %s: %s", f->profile.name,
				f->usable ? "is used without" : "is not supported by this machine",
				f->missing);
	}
	ws->launchers.sandboxes = ws->sandboxes;
	return true;
}

void workers_done(struct workers *ws)
{
	struct worker *w, *next;
	void *known;

	ends_spool_stop(ws, false);
	for (size_t i = 0; (w = map_next(&ws->by_run, &i));)
		for (; w; w = next) {
			next = w->same_run;
			worker_free(w);
		}
	for (w = ws->dead; w; w = next) {
		next = w->next_dead;
		worker_free(w);
	}
	worker_states_done(ws);
	for (size_t i = 0; (known = map_next(&ws->orphans, &i));)
		free(known);
	map_done(&ws->by_run);
	map_done(&ws->by_pid);
	map_done(&ws->orphans);
	deadlines_done(&ws->deadlines);
	deadlines_done(&ws->output_filters);
	deadlines_done(&ws->signs);
	launchers_done(&ws->launchers);
	launch_stacks_free(ws->stacks);
	sandbox_set_free(ws->sandboxes);
	buf_done(&ws->children_text);
	free(ws->pids);
	free(ws->chunk);
	if (ws->notify_dir >= 0)
		close(ws->notify_dir);
	if (ws->null >= 0)
		close(ws->null);
	if (ws->children >= 0)
		close(ws->children);
}

struct worker *workers_find(const struct workers *ws, int64_t run, int64_t fence)
{
	struct worker *w = map_get(&ws->by_run, run);

	while (w && w->fence != fence)
		w = w->same_run;
	return w;
}

void workers_each(struct workers *ws, void (*fn)(struct worker *w, void *arg), void *arg)
{
	struct worker *w;

	for (size_t i = 0; (w = map_next(&ws->by_run, &i));)
		for (; w; w = w->same_run)
			fn(w, arg);
}

void worker_forget(struct worker *w)
{
	struct workers *ws = w->all;
	struct worker *first = map_get(&ws->by_run, w->run);

	if (first != w) {
		while (first->same_run != w)
			first = first->same_run;
		first->same_run = w->same_run;
	} else if (w->same_run) {
		map_put(&ws->by_run, w->run, w->same_run);
	} else {
		map_take(&ws->by_run, w->run);
	}
	ws->count--;
	ends_spool_forget(w);
	w->same_run = NULL;
	w->reports = 0;
	w->next_dead = ws->dead;
	ws->dead = w;
}

void workers_add_ended(struct workers *ws, const struct frame_ended *end)
{
	struct worker *w = worker_new(ws,
		&(struct frame_start){
			.run = end->run, .fence = end->fence, .attempt = end->attempt});

	w->phase = WORKER_ENDED;
	w->told = xcalloc(1, sizeof(*w->told));
	*w->told = *end;
	w->reports = REPORT_ENDED;
	ends_spool_note(w);
}

/* ---- reports to the daemon ---- */

void worker_report_queue(struct worker *w, unsigned reports)
{
	struct workers *ws = w->all;

	w->reports |= reports;
	if (!w->asked || !w->reports || w->posted)
		return;
	w->posted = true;
	w->next_posted = NULL;
	*ws->outbox_end = w;
	ws->outbox_end = &w->next_posted;
}

struct worker *workers_report_next(struct workers *ws)
{
	struct worker *w = ws->outbox;

	if (!w)
		return NULL;
	ws->outbox = w->next_posted;
	if (!ws->outbox)
		ws->outbox_end = &ws->outbox;
	w->posted = false;
	return w;
}

void workers_report_restore(
	struct workers *ws, int64_t run, int64_t fence, bool asked, unsigned reports)
{
	struct worker *w = workers_find(ws, run, fence);

	w->asked = asked;
	w->reports = 0;
	worker_report_queue(w, reports);
}

/* ---- the lease of the node; the daemon may be stopped or gone ---- */

void workers_lease(struct workers *ws, usec_t end_at, usec_t kill_at)
{
	ws->lease_end = end_at;
	ws->lease_kill = kill_at;
	ws->lease_over = ws->lease_late = false;
}

bool workers_lease_over(const struct workers *ws)
{
	return ws->lease_end && clock_boot(&clock_system) >= ws->lease_end;
}

/*
 * SIGKILL is sent at lease_kill even during the grace period, because another node may start the
 * run afterwards.
 */
static void worker_end_with_lease(struct worker *w, void *arg)
{
	(void)arg;
	if (!w->ends_with_lease)
		return;
	if (w->phase == WORKER_OPENING) {
		worker_start_give_up(w, START_LEASE, "the lease of its node has ended");
	} else if (w->phase == WORKER_RUNNING) {
		worker_end(w, ATTEMPT_LOST);
		if (!w->error)
			w->error = xstrdup("ended because the lease of its node had ended");
	}
	if (w->phase == WORKER_TERMINATING && w->deadline.at > w->all->lease_kill)
		deadline_set(&w->all->deadlines, &w->deadline, w->all->lease_kill);
}

static void lease_check(struct workers *ws)
{
	if (ws->lease_over || !workers_lease_over(ws))
		return;
	/*
	 * the spawner may have been suspended: events that arrived meanwhile, such as a renewal,
	 * are handled first
	 */
	ws->lease_late = !ws->lease_late;
	if (ws->lease_late)
		return;
	ws->lease_over = true;
	/* the command may already run: 'not started' would be wrong */
	launchers_settle(&ws->launchers, LAUNCH_BLOCKED_AFTER);
	log_warning("the lease of this node has ended: runs that must not overlap are ended");
	workers_each(ws, worker_end_with_lease, NULL);
}

/* ---- the loop ---- */

static void opening_give_up(struct worker *w, void *arg)
{
	if (w->phase == WORKER_OPENING)
		worker_start_give_up(w, START_TRANSIENT, arg);
}

/*
 * A command may already run although its launcher has not answered, and would run again after a
 * report 'not started'. So launchers get LAUNCH_BLOCKED_AFTER to finish. A start that has a process
 * by then continues; a start without a process is given up.
 */
void workers_give_up(struct workers *ws, const char *why)
{
	launchers_settle(&ws->launchers, LAUNCH_BLOCKED_AFTER);
	workers_each(ws, opening_give_up, (void *)why);
}

static void worker_stop(struct worker *w, void *arg)
{
	(void)arg;
	worker_end(w, ATTEMPT_LOST);
	if (w->forced == ATTEMPT_LOST && !w->error)
		w->error = xstrdup("ended because the spawner was stopped");
}

void workers_stop(struct workers *ws)
{
	ws->stopping = true;
	workers_each(ws, worker_stop, NULL);
}

usec_t workers_next_due(const struct workers *ws)
{
	usec_t next = deadlines_next(&ws->deadlines),
	       output_filter = deadlines_next(&ws->output_filters),
	       launch = launchers_next_due(&ws->launchers),
	       sign = deadlines_next(&ws->signs), state = deadlines_next(&ws->state_removals);

	next = output_filter < next ? output_filter : next;
	next = launch < next ? launch : next;
	next = sign < next ? sign : next;
	next = state < next ? state : next;
	if (ws->lease_end && !ws->lease_over && ws->running && ws->lease_end < next)
		next = ws->lease_end;
	return ws->scan_wanted && ws->scan_after < next ? ws->scan_after : next;
}

void workers_run_due(struct workers *ws)
{
	usec_t now = clock_boot(&clock_system);
	struct deadline *d;

	lease_check(ws);
	launchers_run_due(&ws->launchers, now);
	while ((d = deadlines_take(&ws->deadlines, now)))
		worker_deadline_passed(CONTAINER_OF(d, struct worker, deadline));
	worker_signs_run_due(ws, now);
	worker_states_run_due(ws, now);
	while ((d = deadlines_take(&ws->output_filters, now))) {
		struct worker *w = CONTAINER_OF(d, struct worker, output_filter.release);

		output_filter_release(&w->output_filter, &ws->output_filters, &w->output);
	}
	if (ws->scan_wanted && now >= ws->scan_after)
		orphans_scan(ws, now);
	for (struct worker **at = &ws->ending, *w; (w = *at);) {
		if (worker_end_check(w, now))
			*at = w->next_ending;
		else
			at = &w->next_ending;
	}
	for (struct worker **at = &ws->dead, *w; (w = *at);) {
		if (w->posted) {
			at = &w->next_dead;
			continue;
		}
		*at = w->next_dead;
		worker_free(w);
	}
}
