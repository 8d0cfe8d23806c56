/* SPDX-License-Identifier: Apache-2.0 */
/* One worker, from its creation to its end. */
#include "exec/worker/worker.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/proto/frame.h"
#include "exec/worker/ends_spool.h"
#include "exec/worker/orphans.h"
#include "exec/worker/output/sandbox_hint.h"
#include "exec/worker/worker_launch.h"
#include "exec/worker/worker_results.h"
#include "exec/worker/worker_session.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* of one worker's output, so that a fast writer does not delay others */
#define CHUNKS_PER_TURN 4
/* output after the exit of the main process is read for this long */
#define DRAIN_TIMEOUT USEC_SEC
#define KILL_TIMEOUT (10 * USEC_SEC)   /* for the main process to end after SIGKILL */
#define LEFT_TIMEOUT (5 * USEC_SEC)    /* for killed processes to disappear */
#define STOP_GRACE_MAX (30 * USEC_SEC)
#define OUTPUT_END 512                 /* bytes that are searched for the error of a refused system call */

void worker_free(struct worker *w)
{
	worker_launch_free(w);
	deadline_clear(&w->all->deadlines, &w->deadline);
	deadline_clear(&w->all->output_filters, &w->output_filter.release);
	output_filter_done(&w->output_filter);
	worker_signs_done(w);
	worker_results_done(w);
	epoll_source_close(&w->exit);
	epoll_source_close(&w->out);
	epoll_source_close(&w->session);
	output_file_writer_done(&w->output);
	cgroup_release(w->all->groups, &w->group);
	free(w->error);
	free(w->words);
	free(w->told);
	free(w);
}

/* ---- output ---- */

enum drained { DRAINED_MORE, DRAINED_EMPTY, DRAINED_END };

static enum drained worker_drain(struct worker *w)
{
	for (int i = 0; i < CHUNKS_PER_TURN && w->out.fd >= 0; i++) {
		ssize_t n = read(w->out.fd, w->all->chunk, WORKER_CHUNK);

		if (n > 0) {
			output_filter_write(&w->output_filter, &w->all->output_filters, &w->output,
				w->all->chunk, (size_t)n);
			worker_signs_output(w);
			continue;
		}
		if (n < 0 && errno == EAGAIN)
			return DRAINED_EMPTY;
		if (n == 0 || errno != EINTR)
			epoll_source_close(&w->out);
	}
	return w->out.fd < 0 ? DRAINED_END : DRAINED_MORE;
}

static void on_worker_output(struct epoll_source *s, uint32_t events)
{
	struct worker *w = CONTAINER_OF(s, struct worker, out);

	(void)events;
	(void)worker_drain(w);
}

/* ---- the end ---- */

static int64_t timeval_usec(struct timeval t)
{
	return t.tv_sec * USEC_SEC + t.tv_usec;
}

/* Only wakes the loop; workers_run_due() checks the group. */
static void on_group_change(struct epoll_source *s, uint32_t events)
{
	(void)s;
	(void)events;
}

bool worker_leaves(const struct worker *w)
{
	return w->leaves && w->forced == ATTEMPT_RUNNING;
}

/* Kills processes that have left the process group; they are still in the control group. */
static void cgroup_end(struct worker *w)
{
	if (w->group.dir < 0 || worker_leaves(w) || !cgroup_populated(&w->group))
		return;
	cgroup_kill(&w->group);
	w->group.events.on_ready = on_group_change;
	if (epoll_source_watch(w->all->ep, &w->group.events, EPOLL_CTL_ADD, EPOLLPRI) < 0)
		log_warning("could not watch a control group: %s", strerror(errno));
}

static void main_process_ended(struct worker *w)
{
	w->ended_at = clock_now(&clock_system);
	if (w->ended_at < w->started_at)
		w->ended_at = w->started_at; /* the clock was set back */
	w->died = clock_boot(&clock_system);
	w->phase = WORKER_ENDING;
	w->scanned = false;
	map_take(&w->all->by_pid, w->pid);
	epoll_source_close(&w->exit);
	worker_signs_stop(w);
	deadline_set(&w->all->deadlines, &w->deadline, w->died + DRAIN_TIMEOUT);
	cgroup_end(w);
	worker_ending_add(w);
}

/*
 * The main process has exited but is not reaped, so its pid is not reused. The rest of its process
 * group is killed before waitid() frees the pid.
 */
static void on_worker_exit(struct epoll_source *s, uint32_t events)
{
	struct worker *w = CONTAINER_OF(s, struct worker, exit);
	struct rusage usage = {};
	siginfo_t si = {};

	(void)events;
	if (s->fd < 0)
		return;
	if (!worker_leaves(w))
		kill(-w->pid, SIGKILL);
	if (syscall(SYS_waitid, P_PIDFD, s->fd, &si, WEXITED | WNOHANG, &usage) < 0) {
		log_error("could not read the exit status of process %d: %s", (int)w->pid,
			strerror(errno));
		w->forced = ATTEMPT_FAILED;
		free(w->error);
		w->error = xstrdup("its exit status could not be read");
	} else if (si.si_pid == 0) {
		return;
	}
	failpoint_pass(FP_END_WAITED);
	worker_launch_ended(w);
	w->exit_code = si.si_code == CLD_EXITED ? si.si_status : -1;
	w->term_signal = si.si_code == CLD_KILLED || si.si_code == CLD_DUMPED ? si.si_status : 0;
	w->used = (struct cgroup_usage){.cpu_user = timeval_usec(usage.ru_utime),
		.cpu_system = timeval_usec(usage.ru_stime),
		.memory = usage.ru_maxrss * INT64_C(1024),
		.io_read = -1,
		.io_written = -1};
	main_process_ended(w);
}

/*
 * The process is blocked in the kernel, for example by a file system that does not answer. SIGKILL
 * is pending, so it executes no more instructions of its command. The run ends now; the process is
 * reaped when the kernel releases it.
 */
static void worker_abandon(struct worker *w)
{
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run},
		"process %d of run %" PRId64
		" was killed but is blocked in the kernel; the run ends without waiting for it",
		(int)w->pid, w->run);
	w->exit_code = -1;
	w->term_signal = SIGKILL;
	w->used = (struct cgroup_usage){.io_read = -1, .io_written = -1};
	orphans_add(w->all, &(struct orphan){.pid = w->pid, .run = w->run, .fence = w->fence});
	main_process_ended(w);
	w->died -= LEFT_TIMEOUT; /* no further wait for processes that are left */
}

void worker_ending_add(struct worker *w)
{
	w->next_ending = w->all->ending;
	w->all->ending = w;
	w->all->scan_wanted = true;
}

/*
 * The control group counts all processes of the run. Values that it does not have are those of the
 * main process.
 */
static void cgroup_record_usage(struct worker *w)
{
	struct cgroup_usage u;

	if (w->group.dir < 0)
		return;
	cgroup_usage(w->all->groups, &w->group, &u);
	if (!u.memory)
		u.memory = w->used.memory;
	if (u.cpu_user < 0) {
		u.cpu_user = w->used.cpu_user;
		u.cpu_system = w->used.cpu_system;
	}
	w->used = u;
	if (u.out_of_memory && !w->error)
		w->error =
			xstrdup("out of memory: killed at its memory limit or that of its owner");
	cgroup_release(w->all->groups, &w->group);
}

static char *profile_hint(const struct worker *w)
{
	char end[OUTPUT_END], *hint = NULL;

	if (w->error || w->forced != ATTEMPT_RUNNING || !w->profile)
		return w->error;
	if (w->words && w->exit_code > 0)
		hint = sandbox_hint_setuid(w->words, w->profile);
	if (!hint && w->filtered && (w->exit_code > 0 || w->term_signal))
		hint = sandbox_hint_refused_call(end, output_file_end(&w->output, end, sizeof(end)), w->term_signal, w->profile);
	return hint;
}

static void worker_ended(struct worker *w)
{
	if (w->left && !w->error)
		w->error = xstrdup("some of its processes could not be killed");
	cgroup_record_usage(w);
	epoll_source_close(&w->out);
	output_filter_release(&w->output_filter, &w->all->output_filters, &w->output);
	if (w->output.failed && !w->error)
		w->error =
			xprintf("its output could not be written: %s", strerror(w->output.failed));
	worker_results_read(w);
	worker_gate_read(w);
	output_filter_done(&w->output_filter);
	w->error = profile_hint(w);
	free(STEAL(w->words));
	output_file_writer_done(&w->output);
	deadline_clear(&w->all->deadlines, &w->deadline);
	w->phase = WORKER_ENDED;
	w->all->running--;
	ends_spool_note(w);
	worker_report_queue(w, REPORT_ENDED);
}

bool worker_end_check(struct worker *w, usec_t now)
{
	if (worker_leaves(w))
		w->left = 0;
	else if (w->group.dir >= 0)
		w->left = cgroup_populated(&w->group);
	else if (!w->scanned && now < w->died + LEFT_TIMEOUT)
		return false;
	if (w->left && now < w->died + LEFT_TIMEOUT) {
		deadline_set(&w->all->deadlines, &w->deadline, w->died + LEFT_TIMEOUT);
		return false;
	}
	if (worker_drain(w) == DRAINED_MORE && now < w->died + DRAIN_TIMEOUT)
		return false;
	if (!worker_session_closed(w, now))
		return false;
	worker_ended(w);
	return true;
}

static void process_group_signal(const struct worker *w, int sig)
{
	if (kill(-w->pid, sig) < 0 && errno != ESRCH)
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run},
			"could not send signal %d to process group %d: %s", sig, (int)w->pid,
			strerror(errno));
}

void worker_end(struct worker *w, enum attempt_outcome why)
{
	usec_t grace = w->grace;

	if (w->phase == WORKER_OPENING && w->launch && worker_launch_end(w, why))
		return;
	if (w->phase == WORKER_OPENING)
		worker_start_give_up(w, why == ATTEMPT_CANCELLED ? START_ERROR : START_TRANSIENT,
			"ended before it was started");
	if (w->phase != WORKER_RUNNING)
		return;
	if (w->all->stopping && grace > STOP_GRACE_MAX)
		grace = STOP_GRACE_MAX;
	w->forced = why;
	w->phase = WORKER_TERMINATING;
	if (why == ATTEMPT_CANCELLED)
		failpoint_pass(FP_CANCEL_SIGNAL);
	process_group_signal(w, SIGTERM);
	process_group_signal(w, SIGCONT); /* a stopped process handles SIGTERM only after SIGCONT */
	if (why == ATTEMPT_CANCELLED)
		failpoint_pass(FP_CANCEL_SIGNALLED);
	deadline_set(&w->all->deadlines, &w->deadline, clock_boot(&clock_system) + grace);
}

void worker_deadline_passed(struct worker *w)
{
	if (w->phase == WORKER_OPENING) {
		worker_start_give_up(w, START_TRANSIENT,
			"its directory or program is blocked: no process was ready within 22 seconds");
	} else if (w->phase == WORKER_RUNNING) {
		worker_end(w, ATTEMPT_TIMED_OUT);
	} else if (w->phase == WORKER_TERMINATING) {
		w->phase = WORKER_KILLED;
		process_group_signal(w, SIGKILL);
		/* a process that is blocked before exec() may have no process group yet */
		kill(w->pid, SIGKILL);
		if (w->group.dir >= 0)
			cgroup_kill(&w->group);
		deadline_set(
			&w->all->deadlines, &w->deadline, clock_boot(&clock_system) + KILL_TIMEOUT);
	} else if (w->phase == WORKER_KILLED) {
		worker_abandon(w);
	}
}

/* ---- creation ---- */

struct worker *worker_new(struct workers *ws, const struct frame_start *s)
{
	struct worker *w = xcalloc(1, sizeof(*w));

	*w = (struct worker){.all = ws,
		.run = s->run,
		.fence = s->fence,
		.attempt = s->attempt,
		.grace = s->grace,
		.ends_with_lease = s->ends_with_lease,
		.exit = {-1, on_worker_exit},
		.out = {-1, on_worker_output},
		.session.fd = -1,
		.results_fd = -1,
		.gate_fd = -1,
		.exit_code = -1,
		.group = {.dir = -1, .events.fd = -1}};
	output_file_writer_init(&w->output, ws->output_dir, s->run, s->attempt, s->output_limit);
	output_filter_init(&w->output_filter);
	worker_signs_init(&w->signs);
	w->same_run = map_get(&ws->by_run, w->run);
	map_put(&ws->by_run, w->run, w);
	ws->count++;
	return w;
}

/* ---- after a re-exec ---- */

static bool watch_adopted(struct worker *w)
{
	return (w->exit.fd < 0 ||
		       epoll_source_watch(w->all->ep, &w->exit, EPOLL_CTL_ADD, EPOLLIN) == 0) &&
		(w->out.fd < 0 ||
			epoll_source_watch(w->all->ep, &w->out, EPOLL_CTL_ADD, EPOLLIN) == 0) &&
		(w->session.fd < 0 ||
			epoll_source_watch(w->all->ep, &w->session, EPOLL_CTL_ADD, EPOLLIN) == 0) &&
		(w->phase != WORKER_ENDING || w->group.dir < 0 ||
			epoll_source_watch(w->all->ep, &w->group.events, EPOLL_CTL_ADD, EPOLLPRI) ==
				0);
}

bool workers_adopt(struct workers *ws, const struct worker *from, char *error, struct err *e)
{
	struct worker *w = worker_new(ws,
		&(struct frame_start){.run = from->run,
			.fence = from->fence,
			.attempt = from->attempt,
			.grace = from->grace});
	struct worker fresh = *w;

	*w = *from;
	w->all = ws;
	w->same_run = fresh.same_run;
	w->exit.on_ready = on_worker_exit;
	w->out.on_ready = on_worker_output;
	worker_session_adopt(w);
	w->group.events.on_ready = on_group_change;
	w->group.single_use |= w->phase == WORKER_ENDING;
	w->deadline = (struct deadline){};
	w->error = error;
	if (w->group.dir >= 0 && cgroup_adopt(ws->groups, &w->group) < 0)
		return err_set(
			e, ERR_INVALID, "the control group of run %lld is gone", (long long)w->run);
	output_file_writer_resume(&w->output, ws->output_dir, w->run, w->attempt);
	if (!output_filter_adopt(&w->output_filter, &w->output))
		return err_set(
			e, ERR_INVALID, "the secrets of run %lld are gone", (long long)w->run);
	if (w->phase >= WORKER_RUNNING && w->phase <= WORKER_ENDING)
		ws->running++;
	if (w->phase >= WORKER_RUNNING && w->phase < WORKER_ENDING)
		map_put(&ws->by_pid, w->pid, w);
	if (w->phase == WORKER_ENDING)
		worker_ending_add(w);
	if (from->deadline.at)
		deadline_set(&ws->deadlines, &w->deadline, from->deadline.at);
	if (!watch_adopted(w) || !worker_signs_adopt(w))
		return err_errno(
			e, errno, "could not watch the worker of run %lld", (long long)w->run);
	worker_report_queue(w, 0);
	return true;
}

void worker_end_frame(struct frame *f, const struct worker *w)
{
	if (w->told) {
		f->ended = *w->told;
		return;
	}
	f->ended = (struct frame_ended){
		.run = w->run,
		.fence = w->fence,
		.attempt = w->attempt,
		.pid = w->pid,
		.started_at = w->started_at,
		.ended_at = w->ended_at,
		.outcome = w->forced != ATTEMPT_RUNNING ? w->forced
			   : w->exit_code == 0          ? ATTEMPT_SUCCEEDED
							: ATTEMPT_FAILED,
		.exit_code = w->exit_code,
		.term_signal = w->term_signal,
		.cpu_user = w->used.cpu_user,
		.cpu_system = w->used.cpu_system,
		.max_rss = w->used.memory,
		.io_read = w->used.io_read,
		.io_written = w->used.io_written,
		.output_bytes = output_file_total(&w->output),
		.output_dropped = output_file_dropped(&w->output),
	};
	frame_text(f->ended.error, FRAME_TEXT_MAX, w->error);
}
