/* SPDX-License-Identifier: Apache-2.0 */
/* Record tables of the re-exec state; writes it. */
#include "exec/spawner/reexec_state.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/result.h"
#include "core/start/start_failure.h"
#include "exec/spawner/conn.h"
#include "exec/worker/orphans.h"
#include "exec/worker/worker.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define ANY INT64_MIN, INT64_MAX
#define COUNT 0, INT64_MAX
#define FLAG 0, 1
#define MEMBER(type, member) #member, offsetof(struct type, member), sizeof(((struct type *)0)->member)
#define NUMBER(type, member, ...) {MEMBER(type, member), __VA_ARGS__, false}
#define FD(type, member) {MEMBER(type, member), 3, INT32_MAX, true}
#define FD_OR_NONE(type, member) {MEMBER(type, member), -1, INT32_MAX, true}
#define TABLE(name, fields, text_max) {name, fields, ELEMENTS(fields), text_max}

static const struct reexec_state_field head_fields[] = {
	FD(reexec_state_head, listen),
	FD(reexec_state_head, output_dir),
	FD(reexec_state_head, lock),
	FD_OR_NONE(reexec_state_head, groups),
	NUMBER(reexec_state_head, groups_next, COUNT),
	NUMBER(reexec_state_head, nofile_soft, ANY),
	NUMBER(reexec_state_head, nofile_hard, ANY),
	NUMBER(reexec_state_head, lease_end, COUNT),
	NUMBER(reexec_state_head, lease_kill, COUNT),
	NUMBER(reexec_state_head, stopping, FLAG),
	NUMBER(reexec_state_head, stop_until, COUNT),
	NUMBER(reexec_state_head, idle_since, COUNT),
};

static const struct reexec_state_field conn_fields[] = {
	FD(reexec_state_conn, fd),
	NUMBER(reexec_state_conn, daemon, FLAG),
	NUMBER(reexec_state_conn, full, FLAG),
	NUMBER(reexec_state_conn, version, 0, FRAME_VERSION),
	NUMBER(reexec_state_conn, lists, 0, UINT32_MAX),
	NUMBER(reexec_state_conn, hello_until, COUNT),
};

static const struct reexec_state_field worker_fields[] = {
	NUMBER(worker, run, ANY),
	NUMBER(worker, fence, COUNT),
	NUMBER(worker, attempt, COUNT),
	NUMBER(worker, grace, COUNT),
	NUMBER(worker, ends_with_lease, FLAG),
	NUMBER(worker, leaves, FLAG),
	NUMBER(worker, phase, 0, WORKER_PHASE_MAX - 1),
	NUMBER(worker, forced, 0, ATTEMPT_OUTCOME_MAX - 1),
	NUMBER(worker, pid, 0, INT32_MAX),
	FD_OR_NONE(worker, exit.fd),
	FD_OR_NONE(worker, out.fd),
	FD_OR_NONE(worker, session.fd),
	NUMBER(worker, deadline.at, COUNT),
	FD_OR_NONE(worker, output.fd),
	NUMBER(worker, output.h.head, COUNT),
	NUMBER(worker, output.h.tail, COUNT),
	NUMBER(worker, output.h.total, COUNT),
	NUMBER(worker, output.h.gap_from, COUNT),
	NUMBER(worker, output.h.gap_to, COUNT),
	NUMBER(worker, output.told, COUNT),
	FD_OR_NONE(worker, output_filter.saved),
	FD_OR_NONE(worker, signs.pipe.fd),
	FD_OR_NONE(worker, signs.socket.fd),
	NUMBER(worker, signs.silent_at, COUNT),
	NUMBER(worker, signs.report_at, COUNT),
	NUMBER(worker, signs.reported_at, COUNT),
	NUMBER(worker, signs.heartbeat, COUNT),
	NUMBER(worker, signs.on_output, FLAG),
	FD_OR_NONE(worker, results_fd),
	FD_OR_NONE(worker, gate_fd),
	NUMBER(worker, started_at, COUNT),
	NUMBER(worker, ended_at, COUNT),
	NUMBER(worker, died, COUNT),
	NUMBER(worker, exit_code, -1, 255),
	NUMBER(worker, term_signal, 0, 64),
	NUMBER(worker, reason, 0, START_FAILURE_MAX - 1),
	FD_OR_NONE(worker, group.dir),
	FD_OR_NONE(worker, group.events.fd),
	NUMBER(worker, group.uid, COUNT),
	NUMBER(worker, group.number, COUNT),
	NUMBER(worker, group.cpu_user, ANY),
	NUMBER(worker, group.cpu_system, ANY),
	NUMBER(worker, group.single_use, FLAG),
	NUMBER(worker, used.cpu_user, ANY),
	NUMBER(worker, used.cpu_system, ANY),
	NUMBER(worker, used.memory, COUNT),
	NUMBER(worker, used.io_read, -1, INT64_MAX),
	NUMBER(worker, used.io_written, -1, INT64_MAX),
	NUMBER(worker, used.out_of_memory, FLAG),
	NUMBER(worker, asked, FLAG),
	NUMBER(worker, reports, 0, REPORT_PROGRESS * 2 - 1),
};

/*
 * A member that is not in the table is lost at a re-exec and is initialised again by the new
 * program.
 */
#if defined(__x86_64__)
_Static_assert(sizeof(struct worker) == 960,
	"struct worker has changed: does the new member belong in the table above?");
#endif

static const struct reexec_state_field progress_fields[] = {
	NUMBER(reexec_state_progress, run, ANY),
	NUMBER(reexec_state_progress, fence, COUNT),
	NUMBER(reexec_state_progress, percent, -1, 100),
	NUMBER(reexec_state_progress, at, COUNT),
};

static const struct reexec_state_field result_fields[] = {
	NUMBER(reexec_state_result, run, ANY),
	NUMBER(reexec_state_result, fence, COUNT),
};

static const struct reexec_state_field end_fields[] = {
	NUMBER(reexec_state_end, asked, FLAG),
	NUMBER(reexec_state_end, reports, 0, REPORT_ENDED * 2 - 1),
};

static const struct reexec_state_field orphan_fields[] = {
	NUMBER(orphan, pid, 1, INT32_MAX),
	NUMBER(orphan, run, ANY),
	NUMBER(orphan, fence, COUNT),
	NUMBER(orphan, looks, 0, INT32_MAX),
};

const struct reexec_state_table reexec_state_tables[REEXEC_STATE_KIND_MAX] = {
	[REEXEC_STATE_HEAD] = TABLE("head", head_fields, sizeof(((struct reexec_state_head *)0)->id) - 1),
	[REEXEC_STATE_CONN] = TABLE("connection", conn_fields, FRAME_NODE_MAX - 1),
	[REEXEC_STATE_WORKER] = TABLE("worker", worker_fields, 4096),
	[REEXEC_STATE_ENDED] = TABLE("ended", end_fields, sizeof(struct frame)),
	[REEXEC_STATE_ORPHAN] = TABLE("orphan", orphan_fields, 0),
	[REEXEC_STATE_PROGRESS] = TABLE("progress", progress_fields, SIGN_TEXT_MAX - 1),
	[REEXEC_STATE_RESULT] = TABLE("result", result_fields, RESULTS_BYTES_MAX + 1),
	[REEXEC_STATE_LAST] = {"end", NULL, 0, 0},
};

/* ---- writing ---- */

struct state_writer {
	struct buf b;
	struct reexec_state_fds *fds;
};

static int64_t field_get(const struct reexec_state_field *f, const void *object)
{
	const char *at = (const char *)object + f->offset;
	int64_t wide = 0;
	int32_t narrow;

	if (f->size == sizeof(bool))
		return *(const bool *)at;
	if (f->size == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return f->min < 0 ? narrow : (int64_t)(uint32_t)narrow;
}

static void fd_list_add(struct reexec_state_fds *f, int fd)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 64;
		f->v = xrealloc(f->v, f->cap * sizeof(*f->v));
	}
	f->v[f->n++] = fd;
}

static void record_put(struct state_writer *s, enum reexec_state_kind kind, const void *object,
	const void *text, size_t len)
{
	const struct reexec_state_table *t = &reexec_state_tables[kind];
	uint32_t head[2] = {kind};

	if (len > t->text_max)
		len = t->text_max;
	head[1] = (uint32_t)(t->n * sizeof(int64_t) + len);
	buf_add(&s->b, head, sizeof(head));
	for (size_t i = 0; i < t->n; i++) {
		int64_t n = field_get(&t->fields[i], object);

		buf_add(&s->b, &n, sizeof(n));
		if (t->fields[i].fd && n >= 0)
			fd_list_add(s->fds, (int)n);
	}
	if (len)
		buf_add(&s->b, text, len);
}

static void conn_put(struct state_writer *s, const struct conn *c, bool daemon)
{
	if (!c || c->source.fd < 0)
		return;
	record_put(s, REEXEC_STATE_CONN,
		&(struct reexec_state_conn){.fd = c->source.fd, .daemon = daemon, .full = c->full, .version = c->version,
			.lists = c->lists, .hello_until = c->hello_until},
		c->node, strlen(c->node));
}

/* Follows the record of its worker. */
static void results_put(struct state_writer *s, const struct worker *w)
{
	if (w->results)
		record_put(s, REEXEC_STATE_RESULT, &(struct reexec_state_result){.run = w->run, .fence = w->fence}, w->results,
			strlen(w->results));
}

static void worker_put(struct worker *w, void *arg)
{
	struct state_writer *s = arg;

	if (w->told) {
		struct frame f;

		frame_init(&f, FRAME_ENDED, FRAME_VERSION_STORED);
		f.ended = *w->told;
		record_put(s, REEXEC_STATE_ENDED,
			&(struct reexec_state_end){.asked = w->asked, .reports = w->reports}, &f,
			f.size);
		results_put(s, w);
		return;
	}
	if (!w->deadline.position)
		w->deadline.at = 0;
	output_filter_save(&w->output_filter);
	record_put(s, REEXEC_STATE_WORKER, w, w->error, w->error ? strlen(w->error) : 0);
	if (w->signs.progress)
		record_put(s, REEXEC_STATE_PROGRESS,
			&(struct reexec_state_progress){.run = w->run, .fence = w->fence,
				.percent = w->signs.progress->percent, .at = w->signs.progress->at},
			w->signs.progress->text, strlen(w->signs.progress->text));
	results_put(s, w);
}

int reexec_state_save(const struct reexec_state_head *h, const struct conns *cs, struct workers *ws,
	struct reexec_state_fds *ret)
{
	const uint32_t opening[2] = {REEXEC_STATE_MAGIC, REEXEC_STATE_VERSION};
	struct state_writer s = {.fds = ret};
	const struct orphan *o;
	int fd;

	buf_add(&s.b, opening, sizeof(opening));
	record_put(&s, REEXEC_STATE_HEAD, h, h->id, strlen(h->id));
	conn_put(&s, cs->daemon, true);
	for (size_t i = 0; i < UNAUTHENTICATED_MAX; i++)
		conn_put(&s, cs->unauthenticated[i], false);
	workers_each(ws, worker_put, &s);
	for (size_t i = 0; (o = map_next(&ws->orphans, &i));)
		record_put(&s, REEXEC_STATE_ORPHAN, o, NULL, 0);
	record_put(&s, REEXEC_STATE_LAST, NULL, NULL, 0);
	fd = s.b.len > REEXEC_STATE_MAX ? -E2BIG : io_memfd_sealed("jobsched-state", s.b.data, s.b.len);
	buf_done(&s.b);
	if (fd >= 0)
		fd_list_add(ret, fd);
	return fd;
}

void reexec_state_fds_done(struct reexec_state_fds *f)
{
	free(f->v);
	*f = (struct reexec_state_fds){};
}

void reexec_state_fds_inherit(const struct reexec_state_fds *f, bool on)
{
	for (size_t i = 0; i < f->n; i++)
		fcntl(f->v[i], F_SETFD, on ? 0 : FD_CLOEXEC);
}
