/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and ends what a worker left behind: processes that came to us when their parents died. */
#include "base/auto.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/worker/procfs.h"
#include "exec/spawner/reexec_state.h"
#include "exec/worker/worker.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

/* A look takes about 0.3 us per child; with many of them, at most a tenth of our time goes into looking. */
#define SCAN_PAUSE_PER_CHILD 3
#define SCAN_FREELY 64
#define SCANS_MAX 8                   /* at a time, while there is more to reap */
#define IDENTIFY_TRIES 3              /* a process in the middle of exec shows no environment */
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

static void orphan_identify(struct workers *ws, pid_t pid, struct adopted *a)
{
	struct worker *w = owner_by_session(ws, pid);

	if (!ws->opening) /* else it may be on its way to be a worker */
		a->looks++;
	if (w) {
		a->run = w->run;
		a->fence = w->fence;
	} else if (!procfs_owner(pid, ws->spawner, &a->run, &a->fence)) {
		a->run = 0;
		if (!ws->opening && a->looks == IDENTIFY_TRIES && !cgroups_enabled(ws->groups)) /* else its group knows */
			log_warning("process %d came to us and does not say whose it is: it is left alone",
				(int)pid);
	}
}

void orphans_add(struct workers *ws, const struct reexec_state_orphan *from)
{
	struct adopted *a = xcalloc(1, sizeof(*a));

	*a = (struct adopted){(pid_t)from->pid, from->run, from->fence, from->looks};
	free(map_take(&ws->adopted, a->pid));
	map_put(&ws->adopted, a->pid, a);
}

void orphans_add_helper(struct workers *ws, pid_t pid)
{
	orphans_add(ws, &(struct reexec_state_orphan){.pid = pid, .looks = HELPER_TRIES});
}

/* It is our child and not reaped, so the number is its own. Returns whether to wait for it to say who it is. */
static bool orphan_check(struct workers *ws, pid_t pid)
{
	struct adopted *a = map_get(&ws->adopted, pid);
	struct worker *w;

	if (!a) {
		a = xcalloc(1, sizeof(*a));
		a->pid = pid;
		map_put(&ws->adopted, pid, a);
	}
	if (!a->run && a->looks < IDENTIFY_TRIES)
		orphan_identify(ws, pid, a);
	if (!a->run)
		return !ws->opening && a->looks < IDENTIFY_TRIES;
	w = workers_find(ws, a->run, a->fence);
	if (w && w->phase != WORKER_NOT_STARTED && w->phase < WORKER_ENDING)
		return false; /* its run goes on, and so may it */
	kill(pid, SIGKILL);
	if (w)
		w->left++;
	return false;
}

/* Perhaps the worker of a session which we have not been told of yet: its end is not to be lost. */
static bool orphan_may_be_worker(const struct workers *ws, pid_t pid)
{
	const struct adopted *a = map_get(&ws->adopted, pid);
	const struct worker *w;

	if (!ws->opening || (a && a->looks >= HELPER_TRIES))
		return false;
	if (!a || !a->run)
		return true;
	w = workers_find(ws, a->run, a->fence);
	return w && w->phase == WORKER_OPENING;
}

/* False: something was reaped, whose children may have come to us behind what we have read. */
static bool orphans_scan_once(struct workers *ws, bool *strangers)
{
	bool reaped = false;

	for (struct worker *w = ws->ending; w; w = w->next_ending)
		w->left = 0;
	*strangers = false;
	if (procfs_children(ws->children, &ws->children_text, &ws->pids, &ws->children_n, &ws->pids_cap) < 0)
		return true;
	for (size_t i = 0; i < ws->children_n; i++) {
		siginfo_t si = {};
		bool leave;

		if (map_get(&ws->by_pid, ws->pids[i]) || launchers_expect(&ws->launchers, ws->pids[i]))
			continue;
		leave = orphan_may_be_worker(ws, ws->pids[i]);
		if (waitid(P_PID, (id_t)ws->pids[i], &si, WEXITED | WNOHANG | (leave ? WNOWAIT : 0)) == 0 && si.si_pid) {
			if (leave)
				continue;
			free(map_take(&ws->adopted, ws->pids[i]));
			reaped = true;
			continue;
		}
		*strangers |= orphan_check(ws, ws->pids[i]);
	}
	return !reaped;
}

void orphans_scan(struct workers *ws, usec_t now)
{
	bool strangers, all = false;

	ws->scan_wanted = false;
	for (int i = 0; i < SCANS_MAX && !all; i++)
		all = orphans_scan_once(ws, &strangers);
	strangers |= !all;
	for (struct worker *w = ws->ending; w; w = w->next_ending)
		w->looked = !strangers;
	ws->scan_after = now;
	if (ws->children_n > SCAN_FREELY)
		ws->scan_after += (usec_t)ws->children_n * SCAN_PAUSE_PER_CHILD;
	if (strangers) {
		ws->scan_wanted = true;
		ws->scan_after = now + IDENTIFY_PAUSE;
	}
}
