/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the state of runs between the directories of nodes and the store. */
#include "daemon/schedule/state_transfer.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/dispatcher_private.h"
#include "exec/proto/run_state.h"
#include "store/ops/op.h"
#include "store/ops/run/run_states.h"
#include "store/read/run_state.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPORT_TIMEOUT (75 * USEC_SEC) /* the spawner ends its child after 60 s */
/* A child that has reported exits within milliseconds; the child of an earlier daemon may run for a minute. */
#define BUSY_SOON 25 /* times with BUSY_SOON_DELAY between them, then up to BUSY_MAX with a second */
#define BUSY_SOON_DELAY (5 * USEC_MSEC)
#define BUSY_MAX (BUSY_SOON + 90)

struct state_transfers {
	struct sd_event *ev;
	struct dispatcher *d;
	struct map by_run;      /* transfers, by run */
	int64_t bytes_limit;
	bool stopped;
};

struct state_transfer {
	struct read_task task;  /* first member */
	struct state_transfers *all;
	int64_t run, fence, uid;
	char *owner;            /* owned */
	enum run_state_verb verb;
	int data, socket;       /* owned; -1: none */
	sd_event_source *answer, *timer; /* owned */
	int busy;               /* how often the directory was in use */
	int64_t size, part;     /* of the archive; the next part to be stored */
	struct buf archive;     /* as read from the store */
	struct err err;         /* of reading */
};

static void transfer_free(struct state_transfer *t)
{
	if ((struct state_transfer *)map_get(&t->all->by_run, t->run) == t)
		map_take(&t->all->by_run, t->run);
	sd_event_source_disable_unref(t->answer);
	sd_event_source_disable_unref(t->timer);
	auto_fd_close(&t->data);
	auto_fd_close(&t->socket);
	buf_done(&t->archive);
	free(t->owner);
	free(t);
}

static struct active_run *transfer_run(const struct state_transfer *t)
{
	return active_runs_get(&t->all->d->active_runs, t->run, t->fence);
}

/* Ends a transfer. 'why' NULL: it succeeded. */
static void transfer_finish(struct state_transfer *t /* freed */, const struct err *why)
{
	struct dispatcher *d = t->all->d;
	struct active_run *a = transfer_run(t);

	if (a && why)
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = a->run->job, .run = t->run, .trace = a->trace.id}, "run %" PRId64 ": %s",
			t->run, why->msg);
	if (a && why && t->verb == RUN_STATE_PACK) {
		AUTO_TEXT said = STEAL(a->end.error);

		a->end.error = said ? xprintf("%s; %s", said, why->msg) : xstrdup(why->msg);
	}
	if (a && t->verb == RUN_STATE_PACK)
		dispatcher_state_saved(d, a);
	else if (a)
		dispatcher_state_filled(d, a, why);
	transfer_free(t);
}

/* ---- storing ---- */

static void part_submit(struct state_transfer *t);

static int on_part_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	part_submit(arg);
	return 0;
}

static void timer_set(struct state_transfer *t, usec_t delay, sd_event_time_handler_t fn)
{
	sd_event_source_disable_unref(t->timer);
	t->timer = NULL;
	if (sd_event_add_time_relative(t->all->ev, &t->timer, CLOCK_BOOTTIME, (uint64_t)delay, 1, fn, t) < 0)
		log_warning("could not create a timer for the state of run %" PRId64, t->run);
}

static void on_part_stored(struct op *op, void *arg)
{
	struct state_transfer *t = arg;
	struct err why = {};

	if (t->all->stopped) { /* the spawner reports the end to the next daemon */
		transfer_free(t);
	} else if (!op->ok && op->err.kind != ERR_LIMIT && dispatcher_may_retry(op->err.kind)) {
		timer_set(t, DISPATCHER_RETRY_DELAY, on_part_retry);
	} else if (!op->ok) {
		err_set(&why, op->err.kind, "its state could not be stored and stays on this node: %s", op->err.msg);
		transfer_finish(t, &why);
	} else if (run_states_put_op(op)->last) {
		transfer_finish(t, NULL);
	} else {
		t->part++;
		part_submit(t);
	}
	op_free(op);
}

static int64_t encoded_length(int64_t bytes)
{
	return (bytes + 2) / 3 * 4;
}

/* Parts keep the statements short: a long one would make the store look unavailable. */
static void part_submit(struct state_transfer *t)
{
	int64_t at = t->part * RUN_STATE_PART_BYTES, left = t->size - at;
	size_t len = left < RUN_STATE_PART_BYTES ? (size_t)left : RUN_STATE_PART_BYTES;
	char *bytes = xcalloc(1, len + 1);
	AUTO_DONE(buf) text = {};
	struct op *op;

	failpoint_pass(FP_STATE_PART);
	if (pread(t->data, bytes, len, at) != (ssize_t)len) {
		struct err why = {};

		free(bytes);
		err_set(&why, ERR_INTERNAL, "its packed state could not be read and stays on this node");
		transfer_finish(t, &why);
		return;
	}
	buf_base64(&text, bytes, len);
	free(bytes);
	op = op_new(OP_STATE_PUT, on_part_stored, t);
	op_fill(run_states_put_op(op), .node = t->all->d->o.node_id, .run = t->run, .fence = t->fence, .part = t->part,
		.last = at + (int64_t)len == t->size, .total = encoded_length(t->size), .data = buf_steal(&text), .owner = xstrdup(t->owner),
		.bytes_limit = t->uid == 0 ? 0 : t->all->bytes_limit);
	op->patient = true;
	store_thread_submit(t->all->d->o.store, op);
}

/* ---- the child of the spawner ---- */

static bool report_check(const struct state_transfer *t, const struct run_state_report *r, int64_t limit, struct err *e)
{
	const char *where = t->verb == RUN_STATE_PACK ? "its state could not be packed and stays on this node"
						      : "its state could not be unpacked";

	if (r->error == EFBIG && t->verb == RUN_STATE_PACK)
		return err_set(e, ERR_TOO_LARGE, "its state has more than %" PRId64 " bytes ('state_size') and stays on this node", limit);
	if (r->error == EACCES || r->error == EPERM || r->error == EBADMSG)
		return err_set(e, ERR_DENIED, "%s: %s", where, strerror(r->error));
	if (r->error)
		return err_set(e, ERR_BUSY, "%s: %s", where, strerror(r->error));
	if (r->bytes < 0 || r->bytes > limit)
		return err_set(e, ERR_INTERNAL, "%s: its child reported %" PRId64 " bytes", where, r->bytes);
	return true;
}

static bool request_send(struct state_transfer *t, struct err *e);

static int on_request_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	struct state_transfer *t = arg;
	struct err e = {};

	(void)source;
	(void)usec;
	if (!request_send(t, &e))
		transfer_finish(t, &e);
	return 0;
}

static void report_handle(struct state_transfer *t, const struct run_state_report *r)
{
	const struct active_run *a = transfer_run(t);
	struct err why = {};

	sd_event_source_disable_unref(STEAL(t->answer));
	sd_event_source_disable_unref(STEAL(t->timer));
	auto_fd_close(&t->socket);
	t->socket = -1;
	if (r->error == EBUSY && t->busy++ < BUSY_MAX)
		timer_set(t, t->busy <= BUSY_SOON ? BUSY_SOON_DELAY : USEC_SEC, on_request_retry);
	else if (!report_check(t, r, t->size, &why)) {
		/* there is no directory: the attempt has not used it */
		transfer_finish(t, r->error == ENOENT && t->verb == RUN_STATE_PACK ? NULL : &why);
	} else if (t->verb != RUN_STATE_PACK) {
		transfer_finish(t, NULL);
	} else {
		if (a && r->left_out)
			log_line(LOG_LEVEL_INFO, &(struct log_about){.job = a->run->job, .run = t->run, .trace = a->trace.id},
				"run %" PRId64 ": %d sockets, devices or links that lead out of its state were not packed", t->run,
				(int)r->left_out);
		t->size = r->bytes;
		part_submit(t);
	}
}

static int on_report(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct run_state_report r = {};
	ssize_t n = recv(fd, &r, sizeof(r), MSG_DONTWAIT);

	(void)source;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != (ssize_t)sizeof(r))
		r = (struct run_state_report){.error = EIO}; /* the child or the spawner has ended */
	report_handle(arg, &r);
	return 0;
}

static int on_report_timeout(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	report_handle(arg, &(struct run_state_report){.error = ETIMEDOUT});
	return 0;
}

static bool request_send(struct state_transfer *t, struct err *e)
{
	AUTO_FD theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, errno, "could not create a socket for its state");
	t->socket = pair[0];
	theirs = pair[1];
	r = sd_event_add_io(t->all->ev, &t->answer, t->socket, EPOLLIN | EPOLLET, on_report, t);
	if (r < 0)
		return err_errno(e, -r, "could not watch the socket for its state");
	timer_set(t, REPORT_TIMEOUT, on_report_timeout);
	return spawner_link_state(t->all->d->o.spawner, &(struct spawn_state){.run = t->run, .fence = t->fence, .uid = t->uid,
		.owner = t->owner, .verb = t->verb, .data = t->data, .socket = theirs}, e);
}

static struct state_transfer *transfer_new(struct state_transfers *all, const struct active_run *a, enum run_state_verb verb)
{
	struct state_transfer *t = xcalloc(1, sizeof(*t));

	*t = (struct state_transfer){.all = all, .run = a->run->id, .fence = a->run->fence, .uid = owner_uid(a->run->uid),
		.owner = xstrdup(a->run->owner), .verb = verb, .data = -1, .socket = -1};
	map_put(&all->by_run, t->run, t);
	return t;
}

/* ---- at the end of an attempt ---- */

/* The size is sealed first, so the owner's process cannot use more memory than the limit. */
static int archive_create(int64_t size)
{
	AUTO_FD fd = memfd_create("jobsched-run-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	/* a process of the spawner with another uid writes to it through this descriptor */
	return STEAL_FD(fd);
}

bool state_transfer_save(struct state_transfers *all, struct active_run *a)
{
	struct state_transfer *t;
	struct err e = {};

	if (map_get(&all->by_run, a->run->id))
		return false;
	t = transfer_new(all, a, RUN_STATE_PACK);
	t->size = a->state_size < RUN_STATE_MAX ? a->state_size : RUN_STATE_MAX;
	t->data = archive_create(t->size);
	if (t->data >= 0 ? request_send(t, &e) : err_errno(&e, -t->data, "could not create a memory file"))
		return true;
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = a->run->job, .run = t->run, .trace = a->trace.id},
		"run %" PRId64 ": its state stays on this node: %s", t->run, e.msg);
	if (!a->end.error)
		a->end.error = xprintf("its state stays on this node: %s", e.msg);
	transfer_free(t);
	return false;
}

/* ---- before an attempt ---- */

static void state_read(struct store *s, struct read_task *task)
{
	struct state_transfer *t = (struct state_transfer *)task;

	if (!s)
		err_set(&t->err, ERR_BUSY, "the store could not be opened");
	else
		run_state_read(s, t->run, &t->archive, &t->err);
}

static void on_state_read(struct read_task *task)
{
	struct state_transfer *t = (struct state_transfer *)task;
	struct err e = {};

	if (t->all->stopped) {
		transfer_free(t);
		return;
	}
	if (t->err.kind) {
		err_set(&e, ERR_BUSY, "its state could not be read from the store: %s", t->err.msg);
		transfer_finish(t, &e);
		return;
	}
	if (t->archive.len == 0) { /* no attempt has stored a state */
		transfer_finish(t, NULL);
		return;
	}
	t->data = io_memfd_sealed("jobsched-run-state", t->archive.data, t->archive.len);
	t->size = (int64_t)t->archive.len;
	buf_done(&t->archive);
	if (t->data >= 0 ? request_send(t, &e) : err_errno(&e, -t->data, "could not create a memory file"))
		return;
	/* until the spawner is upgraded, too, the run waits, unless the directory of the last attempt is here */
	if (e.kind == ERR_REFUSED)
		e.kind = ERR_BUSY;
	transfer_finish(t, e.kind == ERR_BUSY && t->verb == RUN_STATE_FILL ? NULL : &e);
}

void state_transfer_fill(struct state_transfers *all, const struct active_run *a)
{
	const struct attempt *previous = a->run->previous;
	bool here = previous && text_equal(previous->node_name, all->d->o.node_name);
	struct state_transfer *t;

	if (map_get(&all->by_run, a->run->id)) { /* of an earlier claim of the run */
		dispatcher_state_filled(all->d, active_runs_get(&all->d->active_runs, a->run->id, a->run->fence),
			&(struct err){.kind = ERR_BUSY, .msg = "its directory is in use"});
		return;
	}
	t = transfer_new(all, a, here ? RUN_STATE_FILL : RUN_STATE_REPLACE);
	t->task = (struct read_task){.work = state_read, .done = on_state_read};
	store_thread_read(all->d->o.store, &t->task);
}

/* ---- all of them ---- */

static void on_dropped(struct op *op, void *arg)
{
	(void)arg; /* after a failure the retention deletes the rows */
	op_free(op);
}

void state_transfers_drop(struct state_transfers *all, int64_t run)
{
	struct op *op = op_new(OP_STATE_DROP, on_dropped, all);

	op_fill(run_states_drop_op(op), .run = run);
	op->patient = true;
	store_thread_submit(all->d->o.store, op);
}

void state_transfers_set_limit(struct state_transfers *all, int64_t bytes)
{
	all->bytes_limit = bytes;
}

struct state_transfers *state_transfers_new(struct sd_event *ev, struct dispatcher *d)
{
	struct state_transfers *all = xcalloc(1, sizeof(*all));

	*all = (struct state_transfers){.ev = ev, .d = d};
	return all;
}

void state_transfers_free(struct state_transfers *all)
{
	struct state_transfer *t;

	if (!all)
		return;
	all->stopped = true;
	for (size_t i = 0; (t = map_next(&all->by_run, &i)); i = 0)
		transfer_free(t);
	map_done(&all->by_run);
	free(all);
}
