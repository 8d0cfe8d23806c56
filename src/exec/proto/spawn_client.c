/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to the spawner; delivers its reports. */
#include "exec/proto/spawn_client.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/sandbox_offer.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "exec/proto/payload.h"
#include "exec/proto/spawn_client_private.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PROBE_INTERVAL USEC_SEC
#define STAT_MAX 4096
#define WELCOME_TIMEOUT (5 * USEC_SEC)

static void report_started(struct spawn_report *r, const struct frame *f)
{
	const struct frame_started *s = &f->started;

	*r = (struct spawn_report){.kind = f->type == FRAME_HAS ? SPAWN_HAS : SPAWN_STARTED, .run = s->run,
		.fence = s->fence, .attempt = s->attempt, .pid = s->pid, .started_at = s->started_at};
}

static void report_not_started(struct spawn_report *r, const struct frame *f)
{
	const struct frame_not_started *s = &f->not_started;

	*r = (struct spawn_report){.kind = SPAWN_NOT_STARTED, .run = s->run, .fence = s->fence,
		.attempt = s->attempt, .outcome = ATTEMPT_NOT_STARTED, .exit_code = -1,
		.reason = (enum start_failure)s->reason, .transient = s->reason == START_TRANSIENT, .error = s->error[0] ? s->error : NULL};
}

static void report_ended(struct spawn_report *r, const struct frame *f)
{
	const struct frame_ended *s = &f->ended;

	*r = (struct spawn_report){.kind = SPAWN_ENDED, .run = s->run, .fence = s->fence,
		.attempt = s->attempt, .pid = s->pid, .started_at = s->started_at, .ended_at = s->ended_at,
		.outcome = (enum attempt_outcome)s->outcome, .exit_code = s->exit_code,
		.term_signal = s->term_signal, .cpu_user = s->cpu_user, .cpu_system = s->cpu_system,
		.max_rss = s->max_rss, .io_read = s->io_read, .io_written = s->io_written,
		.output_bytes = s->output_bytes, .output_dropped = s->output_dropped,
		.error = s->error[0] ? s->error : NULL};
}

static void report_progress(struct spawn_report *r, const struct frame *f)
{
	const struct frame_progress *s = &f->progress;

	*r = (struct spawn_report){.kind = SPAWN_PROGRESS, .run = s->run, .fence = s->fence, .attempt = s->attempt,
		.percent = s->percent, .at = s->at, .text = s->text};
}

static void report_bare(struct spawn_report *r, const struct frame *f)
{
	*r = (struct spawn_report){.kind = f->type == FRAME_LIST_DONE ? SPAWN_LIST_DONE
			: f->type == FRAME_TABLES	? SPAWN_TABLES
							: SPAWN_SUPERSEDED};
}

/* Results precede the report of their end, see frame.h. They are kept until it arrives. */
static void results_collect(struct spawn_client *c, const struct frame_result *r)
{
	if (r->at == 0)
		c->results.len = 0;
	c->results_run = r->run;
	c->results_fence = r->fence;
	if ((size_t)r->at == c->results.len)
		buf_str(&c->results, r->text);
}

static void results_attach(const struct spawn_client *c, struct spawn_report *r)
{
	if (r->kind == SPAWN_ENDED && c->results.len > 0 && c->results_run == r->run && c->results_fence == r->fence)
		r->results = c->results.data;
}

static void (*const report_fillers[FRAME_TYPE_MAX])(struct spawn_report *, const struct frame *) = {
	[FRAME_STARTED] = report_started,
	[FRAME_HAS] = report_started,
	[FRAME_NOT_STARTED] = report_not_started,
	[FRAME_ENDED] = report_ended,
	[FRAME_PROGRESS] = report_progress,
	[FRAME_LIST_DONE] = report_bare,
	[FRAME_SUPERSEDED] = report_bare,
	[FRAME_TABLES] = report_bare,
};

static bool sandbox_offers_receive(struct spawn_client *c, int fd, struct err *e)
{
	AUTO_DONE(buf) text = {};
	struct sandbox_offers *offers;
	size_t size;
	int r;

	if (!payload_sealed(fd, SANDBOX_OFFERS_MAX, &size, e))
		return false;
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : io_read_all(fd, &text, size);
	if (r < 0)
		return err_errno(e, -r, "could not read the list of sandbox profiles");
	if (!sandbox_offers_parse(text.data ? text.data : "", text.len, &offers, e))
		return false;
	sandbox_offers_free(c->sandboxes);
	c->sandboxes = offers;
	return true;
}

static bool tables_receive(struct spawn_client *c, int fd, struct err *e)
{
	AUTO_DONE(table_list) l = {};
	AUTO_DONE(buf) text = {};
	size_t size;
	int r;

	if (!payload_sealed(fd, TABLE_LIST_MAX, &size, e))
		return false;
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : io_read_all(fd, &text, size);
	if (r < 0)
		return err_errno(e, -r, "could not read the list of crontabs");
	if (!table_list_parse(&l, text.data ? text.data : "", text.len, e))
		return false;
	table_list_done(&c->tables);
	c->tables = l;
	c->has_tables = true;
	l = (struct table_list){};
	return true;
}

bool spawn_client_tables(struct spawn_client *c, struct table_list *ret)
{
	if (!c->has_tables)
		return false;
	*ret = c->tables;
	c->tables = (struct table_list){};
	c->has_tables = false;
	return true;
}

static int frame_receive(struct spawn_client *c, struct frame *f, uint32_t version, struct err *e)
{
	int fds[FRAME_FDS_MAX];
	size_t len, n = 0;
	int r;

	do
		r = frame_recv(c->fd, f, &len, fds, &n);
	while (r == -ECONNRESET); /* reported once; frames sent before the reset can still be read */
	if (r < 0)
		return r;
	if (len == 0)
		r = -EPIPE;
	else if (!frame_check(f, len, n, FRAME_FROM_SPAWNER, version, e) ||
		 (f->type == FRAME_SANDBOXES && !sandbox_offers_receive(c, fds[0], e)) ||
		 (f->type == FRAME_TABLES && !tables_receive(c, fds[0], e)))
		r = -EBADMSG;
	frame_fds_close(fds, n);
	return r;
}

/* The callback may free the client. */
static void report_gone(struct spawn_client *c, const char *why)
{
	if (c->gone)
		return;
	c->gone = true;
	sd_event_source_set_enabled(c->source, SD_EVENT_OFF);
	c->fn(&(struct spawn_report){.kind = SPAWN_GONE, .error = why}, c->arg);
}

/*
 * Reads the answer to the hello. 0, or a negative value and *e; -EAGAIN: no answer yet, *e is not
 * set.
 */
static int welcome_receive(struct spawn_client *c, struct err *e)
{
	struct frame f;
	int r = frame_receive(c, &f, 0, e);

	if (r == -EAGAIN)
		return r;
	if (r == -EBADMSG)
		err_wrap(e, "the spawner sent an invalid answer");
	else if (r < 0)
		err_set(e, ERR_UNREACHABLE, "the spawner closed the connection without an answer");
	if (r < 0)
		return r;
	if (f.type == FRAME_REFUSED) {
		err_set(e, ERR_REFUSED, "the spawner supports protocol versions %u to %u, the daemon %d to %d; "
					"restart the older of the two",
			f.refused.oldest, f.refused.newest, FRAME_VERSION_OLDEST, FRAME_VERSION);
		return -EPROTO;
	}
	c->version = f.welcome.version;
	c->limits_refused = f.welcome.limits_refused;
	c->warrants = (enum warrant_policy)f.welcome.warrants;
	frame_text(c->spawner, sizeof(c->spawner), f.welcome.spawner);
	return 0;
}

/* False: no welcome yet, the connection failed, or the client was freed. */
static bool welcome_handle(struct spawn_client *c, const bool *freed)
{
	struct err e = {};
	int r = welcome_receive(c, &e);

	if (r < 0) {
		if (r != -EAGAIN)
			report_gone(c, e.msg);
		return false;
	}
	c->deadline = sd_event_source_disable_unref(c->deadline);
	c->fn(&(struct spawn_report){.kind = SPAWN_CONNECTED}, c->arg);
	return !*freed;
}

static int on_spawner_io(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct spawn_client *c = arg;
	bool freed = false;
	struct frame f;
	int r;

	(void)source;
	(void)fd;
	c->freed = &freed;
	if (!c->version && !welcome_handle(c, &freed)) {
		if (!freed)
			c->freed = NULL;
		return 0;
	}
	if (events & EPOLLOUT)
		spawn_client_flush(c);
	while ((r = frame_receive(c, &f, c->version, NULL)) == 0) {
		struct spawn_report report;

		if (f.type == FRAME_RESULT)
			results_collect(c, &f.result);
		if (!report_fillers[f.type])
			continue;
		report_fillers[f.type](&report, &f);
		results_attach(c, &report);
		c->fn(&report, c->arg);
		if (freed)
			return 0;
		if (report.results)
			c->results.len = 0;
	}
	if (r != -EAGAIN)
		report_gone(c, NULL);
	if (!freed)
		c->freed = NULL;
	return 0;
}

/* ---- the connection ---- */

static bool spawner_connect(int fd, const char *path, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(e, ERR_INVALID, "the socket path '%s' is too long", path);
	memcpy(a.sun_path, path, strlen(path));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return true;
	if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN)
		return err_set(e, ERR_UNREACHABLE, "no spawner listens at '%s': %s", path,
			strerror(errno));
	return err_errno(e, errno, "could not connect to the spawner at '%s'", path);
}

static bool welcome_wait(int fd, struct err *e)
{
	usec_t until = clock_boot(&clock_system) + WELCOME_TIMEOUT;

	for (;;) {
		usec_t left = until - clock_boot(&clock_system);
		int n = left > 0 ? poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1,
					   (int)(left / USEC_MSEC) + 1)
				 : 0;

		if (n > 0)
			return true;
		if (n == 0)
			return err_set(e, ERR_UNREACHABLE, "the spawner does not answer");
		if (errno != EINTR)
			return err_errno(e, errno, "could not wait for the spawner");
	}
}

/* Connects and sends the hello. The socket is non-blocking. */
static bool hello_send(struct spawn_client *c, const char *path, const char *node, struct err *e)
{
	struct frame f;
	int r;

	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return err_errno(e, errno, "could not create a socket");
	if (!spawner_connect(c->fd, path, e))
		return false;
	frame_init(&f, FRAME_HELLO, 0);
	f.hello.oldest = FRAME_VERSION_OLDEST;
	f.hello.newest = FRAME_VERSION;
	frame_text(f.hello.node, sizeof(f.hello.node), node);
	spawn_client_note_unread(c);
	r = frame_send(c->fd, &f, NULL, 0);
	if (r < 0) /* the spawner is exiting */
		return err_set(e, ERR_UNREACHABLE, "could not send the hello to the spawner: %s",
			strerror(-r));
	return true;
}

static bool client_watch(struct spawn_client *c, struct sd_event *ev, struct err *e)
{
	int r = sd_event_add_io(ev, &c->source, c->fd, EPOLLIN | EPOLLET, on_spawner_io, c);

	if (r < 0)
		return err_errno(e, -r, "could not watch the spawner");
	(void)sd_event_source_set_description(c->source, "spawner");
	return true;
}

bool spawn_client_open(struct sd_event *ev, const char *path, const char *node, spawn_report_fn *fn,
	void *arg, struct spawn_client **ret, struct err *e)
{
	AUTO(spawn_client) *c = xcalloc(1, sizeof(*c));
	int r;

	*c = (struct spawn_client){.fn = fn, .arg = arg, .last = &c->first};
	if (!hello_send(c, path, node, e) || !welcome_wait(c->fd, e))
		return false;
	r = welcome_receive(c, e);
	if (r == -EAGAIN)
		return err_set(e, ERR_UNREACHABLE, "the spawner does not answer");
	if (r < 0 || !client_watch(c, ev, e))
		return false;
	*ret = STEAL(c);
	return true;
}

/*
 * A closed connection stays in the accept queue of the spawner's socket until the spawner accepts
 * it. While the spawner is stopped, the client therefore keeps this one connection and does not
 * reconnect, so that the queue does not fill up.
 */
static int on_welcome_timeout(sd_event_source *source, uint64_t usec, void *arg)
{
	struct spawn_client *c = arg;
	struct spawn_health h;

	(void)usec;
	spawn_client_health(c, &h);
	if (!h.stopped) {
		report_gone(c, "the spawner does not answer");
		return 0;
	}
	if (!c->told_stopped)
		log_error("the spawner (pid %d) is stopped by a signal and does not answer; continue it with 'kill -CONT %d'",
			(int)h.pid, (int)h.pid);
	c->told_stopped = true;
	if (sd_event_source_set_time_relative(source, (uint64_t)WELCOME_TIMEOUT) < 0 ||
		sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) < 0)
		report_gone(c, "could not set the timer for the spawner's answer");
	return 0;
}

bool spawn_client_connect(struct sd_event *ev, const char *path, const char *node,
	spawn_report_fn *fn, void *arg, struct spawn_client **ret, struct err *e)
{
	AUTO(spawn_client) *c = xcalloc(1, sizeof(*c));
	int r;

	*c = (struct spawn_client){.fn = fn, .arg = arg, .last = &c->first};
	if (!hello_send(c, path, node, e) || !client_watch(c, ev, e))
		return false;
	r = sd_event_add_time_relative(ev, &c->deadline, CLOCK_BOOTTIME, (uint64_t)WELCOME_TIMEOUT,
		0, on_welcome_timeout, c);
	if (r < 0)
		return err_errno(e, -r, "could not create a timer");
	*ret = STEAL(c);
	return true;
}

void spawn_client_free(struct spawn_client *c)
{
	if (!c)
		return;
	if (c->freed)
		*c->freed = true;
	sd_event_source_disable_unref(c->source);
	sd_event_source_disable_unref(c->deadline);
	for (struct outgoing *o; (o = c->first);) {
		c->first = o->next;
		spawn_client_outgoing_free(o);
	}
	if (c->fd >= 0)
		close(c->fd);
	buf_done(&c->results);
	table_list_done(&c->tables);
	sandbox_offers_free(c->sandboxes);
	free(c);
}

/* ---- health ---- */

/* The state letter of /proc/PID/stat; 0: not readable. */
static char process_state(pid_t pid)
{
	AUTO_TEXT path = xprintf("/proc/%d/stat", (int)pid);
	AUTO_DONE(buf) text = {};
	const char *after;

	if (pid <= 0 || io_read_file(path, &text, STAT_MAX) < 0 || !text.data)
		return 0;
	after = strrchr(text.data, ')');
	return after && after[1] == ' ' ? after[2] : 0;
}

void spawn_client_health(struct spawn_client *c, struct spawn_health *ret)
{
	usec_t now = clock_boot(&clock_system);
	struct ucred peer = {};
	socklen_t len = sizeof(peer);
	char state;

	*ret = (struct spawn_health){};
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
		ret->pid = peer.pid;
	state = process_state(ret->pid);
	ret->stopped = state == 'T' || state == 't';
	if (spawn_client_unread_bytes(c) > 0)
		ret->unread = now - c->unread_since;
	else if (c->version && now - c->probed_at >= PROBE_INTERVAL) {
		c->probed_at = now;
		/* No run has this number, so the spawner ignores it. */
		spawn_client_ack(c, INT64_MAX, 0);
	}
}

struct sandbox_offers *spawn_client_sandboxes(const struct spawn_client *c)
{
	return sandbox_offers_ref(c->sandboxes);
}

enum warrant_policy spawn_client_warrants(const struct spawn_client *c)
{
	return c->warrants;
}

const char *spawn_client_spawner(const struct spawn_client *c)
{
	return c->spawner;
}

unsigned spawn_client_limits_refused(const struct spawn_client *c)
{
	return c->limits_refused;
}
