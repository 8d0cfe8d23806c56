/* SPDX-License-Identifier: Apache-2.0 */
/* Main loop: signals, timers, reload, re-exec, exit. */
#include "exec/spawner/spawner.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/spawner/admission.h"
#include "exec/spawner/conn.h"
#include "exec/spawner/reexec.h"
#include "exec/spawner/reexec_state.h"
#include "exec/spawner/sd_notify.h"
#include "exec/spawner/spawner_conf.h"
#include "exec/spawner/start_queue.h"
#include "exec/spawner/table_reader.h"
#include "exec/spawner/user_lookup.h"
#include "exec/worker/ends_file.h"
#include "exec/worker/ends_spool.h"
#include "exec/worker/worker.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#define STOP_TIMEOUT (2 * USEC_SEC) /* wait for acknowledgements of the last ends */
#define STOP_QUIET (200 * USEC_MSEC) /* after the last acknowledgement: the daemon may restart the ended runs at once, and must get START_STOPPING */
#define TRIM_AFTER (2 * USEC_SEC)    /* after the last worker has ended */
#define TRIM_AGAIN (60 * USEC_SEC)
#define EVENTS 64

struct spawner {
	const struct spawner_options *o;
	int ep;
	struct epoll_source signals, timer;
	struct admission admission;
	struct start_queue starts;
	struct table_reader tables;
	struct conns conns;
	struct workers workers;
	usec_t idle_since;   /* CLOCK_BOOTTIME; 0: not idle */
	usec_t stop_until;   /* CLOCK_BOOTTIME; 0: not stopping, or workers still run */
	usec_t quiet_until;  /* CLOCK_BOOTTIME; 0: there are unsent or unacknowledged reports */
	usec_t trim_at;      /* CLOCK_BOOTTIME; 0: workers run, or nothing to trim */
	usec_t armed;        /* expiry of the timer; 0: off */
	usec_t ping_every;   /* interval of watchdog pings; 0: no watchdog */
	usec_t ping_at;      /* CLOCK_BOOTTIME of the next ping */
	bool leave;
	bool reload;         /* SIGHUP was received */
};

static void signal_handle(struct spawner *sp, uint32_t number)
{
	if (number == SIGCHLD) {
		sp->workers.scan_wanted = true;
	} else if (number == SIGHUP) {
		sp->reload = true;
	} else if ((number == SIGTERM || number == SIGINT) && !sp->workers.stopping) {
		log_info("stopping: ending %zu workers", sp->workers.running);
		start_queue_refuse(&sp->starts, START_STOPPING, "the spawner is being stopped");
		workers_give_up(&sp->workers, "the spawner is being stopped");
		workers_stop(&sp->workers);
	}
}

static void on_spawner_signal(struct epoll_source *s, uint32_t events)
{
	struct spawner *sp = CONTAINER_OF(s, struct spawner, signals);
	/* a signalfd returns each pending signal once, so a short read means that no other is pending */
	struct signalfd_siginfo si[8];
	ssize_t n;

	(void)events;
	do {
		n = read(s->fd, si, sizeof(si));
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(*si); i++)
			signal_handle(sp, si[i].ssi_signo);
	} while (n == (ssize_t)sizeof(si));
}

static void on_spawner_timer(struct epoll_source *s, uint32_t events)
{
	struct spawner *sp = CONTAINER_OF(s, struct spawner, timer);
	uint64_t expirations;

	(void)events;
	if (read(s->fd, &expirations, sizeof(expirations)) > 0)
		sp->armed = 0;
}

static usec_t earlier_time(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

/* Sets 'leave' when the spawner may exit. Returns when to check again. */
static usec_t spawner_exit_check(struct spawner *sp, usec_t now)
{
	struct workers *ws = &sp->workers;

	if (ws->stopping) {
		if (ws->running)
			return USEC_NEVER;
		if (!sp->stop_until)
			sp->stop_until = now + STOP_TIMEOUT;
		if (ws->count)
			sp->quiet_until = 0;
		else if (!sp->quiet_until)
			sp->quiet_until = now + STOP_QUIET;
		sp->leave = !sp->conns.daemon || now >= sp->stop_until ||
			(sp->quiet_until && now >= sp->quiet_until);
		return sp->quiet_until ? earlier_time(sp->quiet_until, sp->stop_until) : sp->stop_until;
	}
	if (sp->conns.daemon || ws->count || !sp->o->linger) {
		sp->idle_since = 0;
		return USEC_NEVER;
	}
	if (!sp->idle_since)
		sp->idle_since = now;
	sp->leave = now >= sp->idle_since + sp->o->linger;
	return sp->idle_since + sp->o->linger;
}

/*
 * Removes unused control groups and launchers TRIM_AFTER the last worker; until then they are
 * reused.
 */
static usec_t spawner_trim_idle(struct spawner *sp, usec_t now)
{
	struct cgroups *g = sp->workers.groups;
	const bool groups = cgroups_enabled(g) && g->owners.used;

	if (sp->workers.running || (!groups && !launchers_spare(&sp->workers.launchers))) {
		sp->trim_at = 0;
		return USEC_NEVER;
	}
	if (!sp->trim_at)
		sp->trim_at = now + TRIM_AFTER;
	if (now < sp->trim_at)
		return sp->trim_at;
	launchers_trim(&sp->workers.launchers);
	if (groups)
		cgroups_trim(g);
	sp->trim_at = groups && g->owners.used ? now + TRIM_AGAIN : 0;
	return sp->trim_at ? sp->trim_at : USEC_NEVER;
}

/*
 * Moves the timer only to an earlier time, to save system calls; an early expiry costs one loop
 * iteration.
 */
static void spawner_timer_arm(struct spawner *sp, usec_t at)
{
	struct itimerspec t = {.it_value = {.tv_sec = at / USEC_SEC,
		.tv_nsec = at % USEC_SEC * 1000}};

	if (at == USEC_NEVER || (sp->armed && sp->armed <= at))
		return;
	if (timerfd_settime(sp->timer.fd, TFD_TIMER_ABSTIME, &t, NULL) < 0)
		log_error("could not set the timer: %s", strerror(errno));
	sp->armed = at;
}

/*
 * Called once per loop iteration. A blocked loop sends no ping; then the service manager kills the
 * spawner and all workers.
 */
static usec_t spawner_watchdog_ping(struct spawner *sp, usec_t now)
{
	if (!sp->ping_every)
		return USEC_NEVER;
	if (now >= sp->ping_at) {
		sd_notify_watchdog();
		sp->ping_at = now + sp->ping_every;
	}
	return sp->ping_at;
}

static void spawner_loop_turn(struct spawner *sp)
{
	usec_t now = clock_boot(&clock_system), next;

	user_cache_timeouts(&sp->starts.users, now);
	secret_readers_timeouts(&sp->starts.readers, now);
	open_files_timeouts(&sp->starts.files, now);
	workers_run_due(&sp->workers);
	ends_spool_run_due(&sp->workers, now);
	table_reader_run_due(&sp->tables, now);
	conns_report(&sp->conns);
	next = earlier_time(conns_cleanup(&sp->conns, now), spawner_exit_check(sp, now));
	next = earlier_time(next, spawner_trim_idle(sp, now));
	next = earlier_time(next, ends_spool_next_due(&sp->workers));
	next = earlier_time(next, spawner_watchdog_ping(sp, now));
	next = earlier_time(next, user_cache_next_timeout(&sp->starts.users));
	next = earlier_time(next, secret_readers_next_timeout(&sp->starts.readers));
	next = earlier_time(next, open_files_next_timeout(&sp->starts.files));
	next = earlier_time(next, table_reader_next_due(&sp->tables));
	spawner_timer_arm(sp, earlier_time(next, workers_next_due(&sp->workers)));
}

/* ---- re-exec ---- */

static void count_opening(struct worker *w, void *arg)
{
	*(size_t *)arg += w->phase == WORKER_OPENING;
}

static bool spawner_reexec(struct spawner *sp, struct err *e)
{
	const struct workers *ws = &sp->workers;
	struct reexec_state_head head = {.listen = sp->o->listen, .output_dir = sp->o->output_dir, .lock = sp->o->lock, .groups = -1,
		.nofile_soft = (int64_t)ws->nofile.rlim_cur, .nofile_hard = (int64_t)ws->nofile.rlim_max,
		.lease_end = ws->lease_end, .lease_kill = ws->lease_kill, .stopping = ws->stopping, .stop_until = sp->stop_until, .idle_since = sp->idle_since};
	__attribute__((cleanup(reexec_state_fds_done))) struct reexec_state_fds fds = {};
	AUTO_FD program = reexec_check(sp->o->program, e);
	AUTO_FD state = -1;
	size_t opening = 0;

	if (program < 0)
		return false;
	/*
	 * Launchers are not passed on: their starts are completed, or given up and repeated by the
	 * daemon.
	 */
	launchers_settle(&sp->workers.launchers, LAUNCH_BLOCKED_AFTER);
	start_queue_refuse(&sp->starts, START_TRANSIENT, "the spawner is being upgraded");
	workers_give_up(&sp->workers, "the spawner is being upgraded");
	launchers_settle(&sp->workers.launchers, LAUNCH_BLOCKED_AFTER);
	workers_each(&sp->workers, count_opening, &opening);
	/*
	 * Workers in this phase cannot be passed on; the end of the launcher wakes the loop, which
	 * tries again.
	 */
	if (opening) {
		sp->reload = true;
		return err_set(e, ERR_BUSY, "%zu starts are being given up; the reload is repeated when they have ended", opening);
	}
	if (cgroups_enabled(ws->groups)) {
		cgroups_trim(ws->groups); /* so that every remaining group belongs to a worker */
		head.groups = ws->groups->root;
		head.groups_next = ws->groups->next;
	}
	frame_text(head.id, sizeof(head.id), sp->o->id);
	state = reexec_state_save(&head, &sp->conns, &sp->workers, &fds);
	if (state < 0)
		return err_errno(e, -state, "could not write the state");
	ends_spool_stop(&sp->workers, false); /* the new program writes the file again */
	log_info("executing '%s' with %zu workers", sp->o->program->path, ws->running);
	return failpoint_ok(FP_RELOAD, e) && reexec_exec(sp->o->program, program, state, &fds, e);
}

/* Called between two loop iterations. Returns only if the re-exec failed. */
static void spawner_reload(struct spawner *sp)
{
	struct err e = {};

	sp->reload = false;
	sd_notify_reloading();
	if (!spawner_reexec(sp, &e))
		log_error("not reloaded, the running program continues: %s", e.msg);
	sd_notify_send("READY=1");
}

static bool spawner_watch(struct spawner *sp, struct err *e)
{
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sp->signals = (struct epoll_source){signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		on_spawner_signal};
	sp->timer = (struct epoll_source){timerfd_create(CLOCK_BOOTTIME,
		TFD_CLOEXEC | TFD_NONBLOCK), on_spawner_timer};
	if (sp->signals.fd < 0 || sp->timer.fd < 0 || epoll_source_watch(sp->ep, &sp->signals, EPOLL_CTL_ADD, EPOLLIN) < 0 ||
		epoll_source_watch(sp->ep, &sp->timer, EPOLL_CTL_ADD, EPOLLIN) < 0)
		return err_errno(e, errno, "could not watch signals and timer");
	r = conns_watch(&sp->conns, sp->o->listen, sp->o->warrant_listen);
	return r < 0 ? err_errno(e, -r, "could not watch the socket") : true;
}

static bool spawner_loop(struct spawner *sp, struct err *e)
{
	struct epoll_event events[EVENTS];

	spawner_loop_turn(sp);
	while (!sp->leave) {
		int n = epoll_wait(sp->ep, events, EVENTS, -1);

		if (n < 0 && errno != EINTR)
			return err_errno(e, errno, "could not wait for events");
		for (int i = 0; i < n; i++) {
			struct epoll_source *s = events[i].data.ptr;

			s->on_ready(s, events[i].events);
		}
		spawner_loop_turn(sp);
		if (sp->reload)
			spawner_reload(sp);
	}
	return true;
}

static bool spawner_resume(struct spawner *sp, struct err *e)
{
	const struct reexec_state_head *h = reexec_state_head(sp->o->resume);

	if (!reexec_state_apply(sp->o->resume, &sp->conns, &sp->workers, e))
		return false;
	sp->workers.stopping = h->stopping;
	/* The old program may have consumed the SIGCHLD of a child. */
	sp->workers.scan_wanted = true;
	workers_lease(&sp->workers, h->lease_end, h->lease_kill);
	sp->stop_until = h->stop_until;
	sp->idle_since = h->idle_since;
	ends_spool_resume(&sp->workers);
	log_info("resumed with %zu workers", sp->workers.running);
	return true;
}

static void spawner_done(struct spawner *sp)
{
	conns_done(&sp->conns);
	table_reader_done(&sp->tables);
	start_queue_done(&sp->starts);
	workers_done(&sp->workers);
	epoll_source_close(&sp->signals);
	epoll_source_close(&sp->timer);
	if (sp->ep >= 0)
		close(sp->ep);
}

/*
 * In user mode there is no configuration: the built-in profiles are used, and missing parts are
 * reported.
 */
static bool spawner_sandboxes_prepare(struct spawner *sp, struct err *e)
{
	const struct spawner_options *o = sp->o;
	AUTO_TEXT path = xstrdup(o->program->path);
	AUTO_TEXT init = xprintf("%s/jobsched-init", dirname(path));
	AUTO_DONE(sandbox_profiles) ours = {};

	if (o->conf)
		return workers_open_sandboxes(&sp->workers, &o->conf->sandboxes,
			o->conf->sandbox_missing == MISSING_REPORT, init, e);
	sandbox_profiles_init(&ours);
	return workers_open_sandboxes(&sp->workers, &ours, true, init, e);
}

bool spawner_run(const struct spawner_options *o, struct err *e)
{
	__attribute__((cleanup(spawner_done))) struct spawner sp = {.o = o,
		.signals.fd = -1, .timer.fd = -1, .tables = TABLE_READER_NONE, .workers = {.null = -1, .children = -1, .notify_dir = -1, .spool = {.pipe.fd = -1, .pidfd = -1}}};

	sp.ep = epoll_create1(EPOLL_CLOEXEC);
	if (sp.ep < 0)
		return err_errno(e, errno, "could not create an epoll set");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_errno(e, errno, "could not become a child subreaper");
	sp.ping_every = sd_notify_watchdog_interval() / 3;
	sp.admission.conf = o->conf;
	sp.admission.key = o->key;
	sp.admission.daemon = o->daemon;
	if (!o->conf)
		user_lookup_self(&sp.admission.self);
	sp.conns = (struct conns){.ep = sp.ep, .output_dir = o->output_dir, .id = o->id, .workers = &sp.workers,
		.starts = &sp.starts, .admission = &sp.admission, .tables = &sp.tables, .daemon_uid = o->daemon};
	sp.tables.ep = sp.ep;
	sp.tables.workers = &sp.workers;
	sp.tables.conf = o->conf;
	sp.tables.key = o->key;
	start_queue_init(&sp.starts,
		&(struct start_queue_options){.ep = sp.ep, .workers = &sp.workers,
		.admission = &sp.admission});
	if (!workers_init(&sp.workers, sp.ep, o->output_dir, o->id, o->groups, e) ||
		!spawner_sandboxes_prepare(&sp, e) || !spawner_watch(&sp, e))
		return false;
	worker_signs_open(&sp.workers, o->notify_path, !o->resume);
	launchers_warm(&sp.workers.launchers);
	if (o->resume && !spawner_resume(&sp, e))
		return err_wrap(e, "could not resume from the state");
	if (!o->resume) {
		ends_file_load(&sp.workers);
		ends_spool_resume(&sp.workers);
	}
	sp.workers.change_user = o->conf != NULL;
	sp.workers.limits_report = o->conf && o->conf->limit_missing == MISSING_REPORT;
	sp.workers.sessions = o->conf && o->conf->pam == PAM_POLICY_SESSION;
	if (sp.workers.sessions)
		/* Each worker needs one more descriptor. */
		sp.workers.running_max -= sp.workers.running_max / 6;
	sp.workers.artifact_path = o->artifact_path;
	if (!spawner_loop(&sp, e))
		return false;
	ends_file_save(&sp.workers);
	return true;
}
