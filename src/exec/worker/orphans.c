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
#define LOOK_PAUSE_PER_CHILD 3
#define LOOK_FREELY 64
#define LOOKS_MAX 8                   /* at a time, while there is more to reap */
#define STRANGER_LOOKS 3              /* a process in the middle of exec shows no environment */
#define HELPER_LOOKS (STRANGER_LOOKS + 1)
#define STRANGER_WAIT (20 * USEC_MSEC)

static struct worker *owner_by_session(const struct workers *ws, pid_t pid)
{
	pid_t session = getsid(pid);
	struct worker *w = map_get(&ws->by_pid, session);

	for (struct worker *e = ws->ending; e && !w; e = e->next_ending)
		if (e->pid == session)
			w = e;
	return w;
}

static void identify(struct workers *ws, pid_t pid, struct adopted *a)
{
	struct worker *w = owner_by_session(ws, pid);

	if (!ws->opening) /* else it may be on its way to be a worker */
		a->looks++;
	if (w) {
		a->run = w->run;
		a->fence = w->fence;
	} else if (!procfs_owner(pid, ws->spawner, &a->run, &a->fence)) {
		a->run = 0;
		if (!ws->opening && a->looks == STRANGER_LOOKS && !cgroups_on(ws->groups)) /* else its group knows */
			log_warning("process %d came to us and does not say whose it is: it is left alone",
				(int)pid);
	}
}

void workers_know(struct workers *ws, const struct state_adopted *from)
{
	struct adopted *a = xcalloc(1, sizeof(*a));

	*a = (struct adopted){(pid_t)from->pid, from->run, from->fence, from->looks};
	free(map_take(&ws->adopted, a->pid));
	map_put(&ws->adopted, a->pid, a);
}

void workers_know_helper(struct workers *ws, pid_t pid)
{
	workers_know(ws, &(struct state_adopted){.pid = pid, .looks = HELPER_LOOKS});
}

/* It is our child and not reaped, so the number is its own. Returns whether to wait for it to say who it is. */
static bool visit(struct workers *ws, pid_t pid)
{
	struct adopted *a = map_get(&ws->adopted, pid);
	struct worker *w;

	if (!a) {
		a = xcalloc(1, sizeof(*a));
		a->pid = pid;
		map_put(&ws->adopted, pid, a);
	}
	if (!a->run && a->looks < STRANGER_LOOKS)
		identify(ws, pid, a);
	if (!a->run)
		return !ws->opening && a->looks < STRANGER_LOOKS;
	w = workers_find(ws, a->run, a->fence);
	if (w && w->phase != WORKER_NOT_STARTED && w->phase < WORKER_ENDING)
		return false; /* its run goes on, and so may it */
	kill(pid, SIGKILL);
	if (w)
		w->left++;
	return false;
}

/* Perhaps the worker of a session which we have not been told of yet: its end is not to be lost. */
static bool awaited(const struct workers *ws, pid_t pid)
{
	const struct adopted *a = map_get(&ws->adopted, pid);
	const struct worker *w;

	if (!ws->opening || (a && a->looks >= HELPER_LOOKS))
		return false;
	if (!a || !a->run)
		return true;
	w = workers_find(ws, a->run, a->fence);
	return w && w->phase == WORKER_OPENING;
}

/* False: something was reaped, whose children may have come to us behind what we have read. */
static bool look_once(struct workers *ws, bool *strangers)
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
		leave = awaited(ws, ws->pids[i]);
		if (waitid(P_PID, (id_t)ws->pids[i], &si, WEXITED | WNOHANG | (leave ? WNOWAIT : 0)) == 0 && si.si_pid) {
			if (leave)
				continue;
			free(map_take(&ws->adopted, ws->pids[i]));
			reaped = true;
			continue;
		}
		*strangers |= visit(ws, ws->pids[i]);
	}
	return !reaped;
}

void workers_look(struct workers *ws, usec_t now)
{
	bool strangers, all = false;

	ws->look_wanted = false;
	for (int i = 0; i < LOOKS_MAX && !all; i++)
		all = look_once(ws, &strangers);
	strangers |= !all;
	for (struct worker *w = ws->ending; w; w = w->next_ending)
		w->looked = !strangers;
	ws->look_after = now;
	if (ws->children_n > LOOK_FREELY)
		ws->look_after += (usec_t)ws->children_n * LOOK_PAUSE_PER_CHILD;
	if (strangers) {
		ws->look_wanted = true;
		ws->look_after = now + STRANGER_WAIT;
	}
}
