/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to the spawner; distributes its reports. */
#include "daemon/loop/spawner_link.h"
#include "base/backoff.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/exit_status.h"
#include "exec/proto/spawner_launch.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define RECONNECT_MIN (100 * USEC_MSEC)
#define RECONNECT_MAX (5 * USEC_SEC)
/* A spawner that has not read its requests for this long is reported. */
#define UNREAD_MAX (3 * USEC_SEC)

struct spawner_link {
	struct spawner_link_options o;
	sd_event *ev;                    /* borrowed */
	struct {
		spawn_report_fn *fn;     /* NULL: no such client */
		void *arg;
	} clients[SPAWNER_LINK_CLIENT_MAX];
	struct spawn_client *spawner;    /* NULL: not connected */
	struct spawn_client *connecting; /* waits for the welcome; NULL while 'spawner' is set */
	/* the process that starts a spawner; NULL: there is none */
	sd_event_source *launching;
	pid_t launching_pid;
	sd_event_source *retry_timer;
	bool ready, stopped;
	bool tables; /* the crontabs are asked for */
	struct backoff backoff;
	enum warrant_policy warrants;
};

/* ---- reports ---- */

static void pass_report(const struct spawner_link *l, enum spawner_link_client which,
	const struct spawn_report *r)
{
	if (l->clients[which].fn)
		l->clients[which].fn(r, l->clients[which].arg);
}

/* The timer of the next attempt to connect; while connected, of the check that the connection is stable. */
static void set_retry_timer(struct spawner_link *l, usec_t delay)
{
	sd_event_source_set_time_relative(l->retry_timer, (uint64_t)delay);
	sd_event_source_set_enabled(l->retry_timer, SD_EVENT_ONESHOT);
}

static void set_connected(struct spawner_link *l)
{
	l->warrants = spawn_client_warrants(l->spawner);
	backoff_connected(&l->backoff, clock_boot(&clock_system));
	set_retry_timer(l, BACKOFF_STABLE);
	if (l->tables)
		spawn_client_watch_tables(l->spawner, true);
}

/*
 * Logs the first failure, then one line a minute with the number of failures, and sets the timer of the next attempt. Returns its
 * delay.
 */
static usec_t retry_later(struct spawner_link *l, const char *what, const char *why)
{
	usec_t now = clock_boot(&clock_system), delay = backoff_failed(&l->backoff, now);
	unsigned n;
	enum log_level level = backoff_log_level(&l->backoff, now, &n);
	char times[64] = "", when[64] = "connecting again";

	if (n > 1)
		snprintf(times, sizeof(times), " (%u failures since the last message)", n);
	if (delay)
		snprintf(when, sizeof(when), "trying again in %" PRId64 "ms", delay / USEC_MSEC);
	log_line(level == LOG_LEVEL_DEBUG ? level : LOG_LEVEL_ERROR, NULL, "%s, %s%s%s%s", what, when, times, why ? ": " : "",
		why ? why : "");
	set_retry_timer(l, delay);
	return delay;
}

static void connection_lost(struct spawner_link *l, const struct spawn_report *r)
{
	usec_t delay;

	if (l->connecting) {
		spawn_client_free(STEAL(l->connecting));
		retry_later(l, "no spawner", r->error);
		return;
	}
	l->ready = false;
	spawn_client_free(STEAL(l->spawner));
	delay = retry_later(l, "the spawner has closed the connection", r->error);
	pass_report(l, SPAWNER_LINK_NOTICES, r);
	pass_report(l, SPAWNER_LINK_RUNS, r);
	if (delay == 0)
		spawner_link_connect(l);
}

/* The spawner uses the clock of its host. History uses the clock of the store. */
static void to_store_time(const struct spawner_link *l, struct spawn_report *r)
{
	usec_t offset = l->o.offset ? l->o.offset(l->o.arg) : 0;

	if (r->started_at)
		r->started_at += offset;
	if (r->ended_at)
		r->ended_at += offset;
	if (r->at)
		r->at += offset;
}

static void on_report(const struct spawn_report *from_spawner, void *arg)
{
	struct spawn_report r = *from_spawner;
	struct spawner_link *l = arg;

	to_store_time(l, &r);
	switch (r.kind) {
	case SPAWN_GONE:
		connection_lost(l, &r);
		return;
	case SPAWN_CONNECTED:
		l->spawner = STEAL(l->connecting);
		set_connected(l);
		pass_report(l, SPAWNER_LINK_RUNS, &r);
		return;
	case SPAWN_SUPERSEDED:
		log_error("a newer jobschedd has taken over the spawner");
		l->ready = false;
		l->o.on_exit(EXIT_TRY_AGAIN, l->o.arg);
		return;
	case SPAWN_TABLES:
		pass_report(l, SPAWNER_LINK_TABLES, &r);
		break;
	case SPAWN_LIST_DONE:
		l->ready = true;
		pass_report(l, SPAWNER_LINK_NOTICES, &r);
		pass_report(l, SPAWNER_LINK_RUNS, &r);
		break;
	default:
		pass_report(l, r.run < 0 ? SPAWNER_LINK_NOTICES : SPAWNER_LINK_RUNS, &r);
		break;
	}
	l->o.on_change(l->o.arg);
}

/* ---- connecting ---- */

static bool open_client(struct spawner_link *l, struct err *e)
{
	if (!spawn_client_open(l->ev, l->o.socket, l->o.node_id, on_report, l, &l->spawner, e))
		return false;
	set_connected(l);
	return true;
}

bool spawner_link_open(struct spawner_link *l, struct err *e)
{
	if (open_client(l, e))
		return true;
	if (!l->o.program || e->kind != ERR_UNREACHABLE)
		return false;
	return spawner_launch(l->o.program, l->o.runtime_dir, l->o.output_dir, e) &&
	       open_client(l, e);
}

static bool begin_connect(struct spawner_link *l, struct err *e)
{
	return spawn_client_connect(
		l->ev, l->o.socket, l->o.node_id, on_report, l, &l->connecting, e);
}

static int on_launched(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct spawner_link *l = arg;
	struct err e = {};
	int status;
	bool other;

	(void)source;
	(void)fd;
	(void)events;
	l->launching = sd_event_source_disable_unref(l->launching);
	if (waitpid(l->launching_pid, &status, WNOHANG) != l->launching_pid)
		retry_later(l, "no spawner", "the process that starts the spawner has no exit status");
	else if (!spawner_launch_end(status, l->o.program, l->o.runtime_dir, &other, &e) ||
		 !begin_connect(l, &e))
		retry_later(l, "no spawner", e.msg);
	return 0;
}

static bool launch_spawner(struct spawner_link *l, struct err *e)
{
	int pidfd, r;

	if (!spawner_launch_begin(
		    l->o.program, l->o.runtime_dir, l->o.output_dir, &l->launching_pid, e))
		return false;
	pidfd = (int)syscall(SYS_pidfd_open, l->launching_pid, 0);
	r = pidfd < 0 ? -errno
		      : sd_event_add_io(l->ev, &l->launching, pidfd, EPOLLIN, on_launched, l);
	if (r < 0) {
		auto_fd_close(&pidfd);
		return err_errno(e, -r, "could not watch '%s'", l->o.program);
	}
	sd_event_source_set_io_fd_own(l->launching, true);
	return true;
}

void spawner_link_connect(struct spawner_link *l)
{
	struct err e = {};

	if (l->spawner || l->connecting || l->launching)
		return;
	if (begin_connect(l, &e))
		return;
	if (!l->o.program || e.kind != ERR_UNREACHABLE || !launch_spawner(l, &e))
		retry_later(l, "no spawner", e.msg);
}

static int on_reconnect_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct spawner_link *l = arg;

	unsigned failures;

	(void)source;
	(void)usec;
	if (l->spawner) {
		failures = backoff_stable(&l->backoff);
		if (failures)
			log_info("the spawner is connected again, after %u failures", failures);
	} else if (!l->stopped) {
		spawner_link_connect(l);
	}
	return 0;
}

void spawner_link_close(struct spawner_link *l, usec_t delay)
{
	l->ready = false;
	spawn_client_free(STEAL(l->spawner));
	set_retry_timer(l, delay);
}

void spawner_link_stop(struct spawner_link *l)
{
	l->stopped = true;
}

bool spawner_link_new(struct sd_event *ev, const struct spawner_link_options *o,
	struct spawner_link **ret, struct err *e)
{
	AUTO(spawner_link) *l = xcalloc(1, sizeof(*l));
	int r = sd_event_add_time(ev, &l->retry_timer, CLOCK_BOOTTIME, 0, 1, on_reconnect_timer, l);

	l->o = *o;
	l->ev = ev;
	l->backoff = (struct backoff){.min = RECONNECT_MIN, .max = RECONNECT_MAX};
	if (r < 0 || (r = sd_event_source_set_enabled(l->retry_timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	*ret = STEAL(l);
	return true;
}

void spawner_link_free(struct spawner_link *l)
{
	if (!l)
		return;
	spawn_client_free(l->spawner);
	spawn_client_free(l->connecting);
	sd_event_source_disable_unref(l->launching);
	sd_event_source_disable_unref(l->retry_timer);
	free(l);
}

void spawner_link_set_client(struct spawner_link *l, enum spawner_link_client which,
	spawn_report_fn *fn, void *arg)
{
	l->clients[which].fn = fn;
	l->clients[which].arg = arg;
}

/* ---- state ---- */

bool spawner_link_ready(const struct spawner_link *l)
{
	return l->ready;
}

void spawner_link_suspend(struct spawner_link *l)
{
	l->ready = false;
}

void spawner_link_list(struct spawner_link *l)
{
	spawn_client_list(l->spawner);
}

const char *spawner_link_id(const struct spawner_link *l)
{
	return l->spawner ? spawn_client_spawner(l->spawner) : NULL;
}

enum warrant_policy spawner_link_warrants(const struct spawner_link *l)
{
	return l->warrants;
}

unsigned spawner_link_limits_refused(const struct spawner_link *l)
{
	return l->spawner ? spawn_client_limits_refused(l->spawner) : 0;
}

struct sandbox_offers *spawner_link_sandboxes(const struct spawner_link *l)
{
	return l->spawner ? spawn_client_sandboxes(l->spawner) : NULL;
}

void spawner_link_health(const struct spawner_link *l, struct spawner_link_health *ret)
{
	struct spawn_client *c = l->spawner ? l->spawner : l->connecting;
	struct spawn_health h;

	*ret = (struct spawner_link_health){};
	if (!c) {
		snprintf(ret->why, sizeof(ret->why),
			"the spawner is not running or does not answer");
		return;
	}
	spawn_client_health(c, &h);
	if (h.stopped) {
		ret->stopped = h.pid;
		snprintf(ret->why, sizeof(ret->why), "the spawner (pid %d) is stopped by a signal",
			(int)h.pid);
	} else if (h.unread >= UNREAD_MAX) {
		snprintf(ret->why, sizeof(ret->why),
			"the spawner (pid %d) has not read its requests for %lld s", (int)h.pid,
			(long long)(h.unread / USEC_SEC));
	} else if (!l->spawner) {
		snprintf(ret->why, sizeof(ret->why), "the spawner (pid %d) has not answered yet",
			(int)h.pid);
	} else if (!l->ready) {
		snprintf(ret->why, sizeof(ret->why), "the spawner has not listed its runs yet");
	}
}

/* ---- requests ---- */

bool spawner_link_start(struct spawner_link *l, const struct start_plan *p, struct err *e)
{
	if (!l->ready)
		return err_set(e, ERR_BUSY, "there is no spawner at the moment");
	return spawn_client_start(l->spawner, p, e);
}

void spawner_link_cancel(struct spawner_link *l, int64_t run, int64_t fence)
{
	if (l->spawner)
		spawn_client_cancel(l->spawner, run, fence);
}

void spawner_link_ack(struct spawner_link *l, int64_t run, int64_t fence)
{
	if (l->spawner)
		spawn_client_ack(l->spawner, run, fence);
}

void spawner_link_set_deadline(struct spawner_link *l, usec_t end_at, usec_t kill_at)
{
	if (l->spawner)
		spawn_client_lease(l->spawner, end_at, kill_at);
}

bool spawner_link_open_file(struct spawner_link *l, const struct spawn_file *f, struct err *e)
{
	if (!l->spawner)
		return err_set(e, ERR_BUSY, "there is no spawner at the moment");
	return spawn_client_open_file(l->spawner, f, e);
}

bool spawner_link_state(struct spawner_link *l, const struct spawn_state *s, struct err *e)
{
	if (!l->spawner)
		return err_set(e, ERR_BUSY, "there is no spawner at the moment");
	return spawn_client_state(l->spawner, s, e);
}

void spawner_link_watch_tables(struct spawner_link *l, bool on)
{
	if (l->spawner && l->tables != on)
		spawn_client_watch_tables(l->spawner, on);
	l->tables = on;
}

bool spawner_link_tables(struct spawner_link *l, struct table_list *ret)
{
	return l->spawner && spawn_client_tables(l->spawner, ret);
}

bool spawner_link_forget_output(struct spawner_link *l, int64_t run, int64_t attempt)
{
	if (!l->spawner)
		return false;
	spawn_client_forget_output(l->spawner, run, attempt);
	return true;
}
