/* SPDX-License-Identifier: Apache-2.0 */
/* Kills reparented processes that a worker left behind. */
#include "exec/worker/orphans.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/worker/procfs.h"
#include "exec/worker/worker.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

/* A scan takes about 0.3 us per child. The pause limits scans to a tenth of the spawner's time. */
#define SCAN_PAUSE_PER_CHILD 3
#define SCAN_FREELY 64
#define SCANS_MAX 8                   /* in a row, while exited children are found */
#define IDENTIFY_TRIES 3              /* a process that is in exec() shows no environment */
#define HELPER_TRIES (IDENTIFY_TRIES + 1)
#define IDENTIFY_PAUSE (20 * USEC_MSEC)

static struct worker *owner_by_session(const struct workers *ws, pid_t pid)
{
	pid_t session = getsid(pid);
	struct worker *w = map_get(&ws->by_pid, session);

	for (struct worker *e = ws->ending; e && !w; e = e->next_ending)
		if (e->pid == session)
			w = e;
	return w;
}

static void orphan_identify(struct workers *ws, pid_t pid, struct orphan *a)
{
	struct worker *w = owner_by_session(ws, pid);

	if (!ws->opening) /* otherwise it may become a worker */
		a->looks++;
	if (w) {
		a->run = w->run;
		a->fence = w->fence;
		a->may_continue = w->leaves;
	} else if (!procfs_owner(pid, ws->spawner, &a->run, &a->fence)) {
		a->run = 0;
		/* otherwise its control group ends it */
		if (!ws->opening && a->looks == IDENTIFY_TRIES && !cgroups_enabled(ws->groups))
			log_warning(
				"process %d was reparented to the spawner and its run cannot be identified; it is not killed",
				(int)pid);
	}
}

void orphans_add(struct workers *ws, const struct orphan *o)
{
	struct orphan *a = xcalloc(1, sizeof(*a));

	*a = *o;
	free(map_take(&ws->orphans, a->pid));
	map_put(&ws->orphans, a->pid, a);
}

void orphans_add_helper(struct workers *ws, pid_t pid)
{
	orphans_add(ws, &(struct orphan){.pid = pid, .looks = HELPER_TRIES});
}

/*
 * The process is an unreaped child, so its pid is not reused. True: it cannot be identified yet;
 * try again later.
 */
static bool orphan_check(struct workers *ws, pid_t pid)
{
	struct orphan *a = map_get(&ws->orphans, pid);
	struct worker *w;

	if (!a) {
		a = xcalloc(1, sizeof(*a));
		a->pid = pid;
		map_put(&ws->orphans, pid, a);
	}
	if (!a->run && a->looks < IDENTIFY_TRIES)
		orphan_identify(ws, pid, a);
	if (!a->run)
		return !ws->opening && a->looks < IDENTIFY_TRIES;
	w = workers_find(ws, a->run, a->fence);
	if (w && w->phase != WORKER_NOT_STARTED && w->phase < WORKER_ENDING)
		return false; /* its run is still running */
	if (w ? worker_leaves(w) : a->may_continue) {
		*a = (struct orphan){.pid = pid, .looks = IDENTIFY_TRIES};
		return false;
	}
	kill(pid, SIGKILL);
	if (w)
		w->left++;
	return false;
}

/*
 * It may be a worker that the process of a PAM session has not reported yet; its exit status must
 * not be lost.
 */
static bool orphan_may_be_worker(const struct workers *ws, pid_t pid)
{
	const struct orphan *a = map_get(&ws->orphans, pid);
	const struct worker *w;

	if (!ws->opening || (a && a->looks >= HELPER_TRIES))
		return false;
	if (!a || !a->run)
		return true;
	w = workers_find(ws, a->run, a->fence);
	return w && w->phase == WORKER_OPENING;
}

/* False: a child was reaped; its own children may have been reparented after the list was read. */
static bool orphans_scan_once(struct workers *ws, bool *unidentified)
{
	bool reaped = false;

	for (struct worker *w = ws->ending; w; w = w->next_ending)
		w->left = 0;
	*unidentified = false;
	if (procfs_children(ws->children, &ws->children_text, &ws->pids, &ws->children_n,
		    &ws->pids_cap) < 0)
		return true;
	for (size_t i = 0; i < ws->children_n; i++) {
		siginfo_t si = {};
		bool keep;

		if (map_get(&ws->by_pid, ws->pids[i]) ||
			launchers_expect(&ws->launchers, ws->pids[i]))
			continue;
		keep = orphan_may_be_worker(ws, ws->pids[i]);
		if (waitid(P_PID, (id_t)ws->pids[i], &si,
			    WEXITED | WNOHANG | (keep ? WNOWAIT : 0)) == 0 &&
			si.si_pid) {
			if (keep)
				continue;
			free(map_take(&ws->orphans, ws->pids[i]));
			reaped = true;
			continue;
		}
		*unidentified |= orphan_check(ws, ws->pids[i]);
	}
	return !reaped;
}

void orphans_scan(struct workers *ws, usec_t now)
{
	bool unidentified, all = false;

	ws->scan_wanted = false;
	for (int i = 0; i < SCANS_MAX && !all; i++)
		all = orphans_scan_once(ws, &unidentified);
	unidentified |= !all;
	for (struct worker *w = ws->ending; w; w = w->next_ending)
		w->scanned = !unidentified;
	ws->scan_after = now;
	if (ws->children_n > SCAN_FREELY)
		ws->scan_after += (usec_t)ws->children_n * SCAN_PAUSE_PER_CHILD;
	if (unidentified) {
		ws->scan_wanted = true;
		ws->scan_after = now + IDENTIFY_PAUSE;
	}
}
