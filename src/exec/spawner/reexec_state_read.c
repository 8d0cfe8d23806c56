/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the re-exec state; validates all of it before applying any of it. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/proto/payload.h"
#include "exec/spawner/conn.h"
#include "exec/spawner/reexec_state.h"
#include "exec/worker/orphans.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_results.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct reexec_state {
	char *data; /* owned */
	size_t len;
	struct reexec_state_head head;
	struct reexec_state_fds fds;
};

struct state_reader {
	const char *data;
	size_t len, at;
	enum reexec_state_kind kind;
	const char *text;  /* of the last record read */
	size_t text_len;
	union {
		struct reexec_state_head head;
		struct reexec_state_conn conn;
		struct worker worker;
		struct reexec_state_end ended;
		struct orphan orphan;
		struct reexec_state_progress progress;
		struct reexec_state_result result;
	};
};

static void field_set(const struct reexec_state_field *f, void *object, int64_t n)
{
	char *at = (char *)object + f->offset;
	int32_t narrow = (int32_t)n;

	if (f->size == sizeof(bool))
		*(bool *)at = n != 0;
	else if (f->size == sizeof(n))
		memcpy(at, &n, sizeof(n));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

static bool record_fields_read(struct state_reader *r, const struct reexec_state_table *t,
	const char *from, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct reexec_state_field *f = &t->fields[i];
		int64_t n;

		memcpy(&n, from + i * sizeof(n), sizeof(n));
		if (n < f->min || n > f->max)
			return err_set(e, ERR_INVALID, "state '%s': %s %" PRId64 " is out of range",
				t->name, f->name, n);
		field_set(f, &r->head, n);
	}
	return true;
}

static bool record_read(struct state_reader *r, struct err *e)
{
	const struct reexec_state_table *t;
	uint32_t head[2];

	if (r->len - r->at < sizeof(head))
		return err_set(e, ERR_INVALID, "the state is truncated");
	memcpy(head, r->data + r->at, sizeof(head));
	r->at += sizeof(head);
	if (head[0] < REEXEC_STATE_HEAD || head[0] >= REEXEC_STATE_KIND_MAX)
		return err_set(e, ERR_INVALID, "the state has a record of unknown kind %u",
			head[0]);
	t = &reexec_state_tables[head[0]];
	if (head[1] > r->len - r->at || head[1] < t->n * sizeof(int64_t) ||
		head[1] - t->n * sizeof(int64_t) > t->text_max)
		return err_set(e, ERR_INVALID, "state '%s': invalid length of %u bytes", t->name,
			head[1]);
	r->kind = (enum reexec_state_kind)head[0];
	r->text = r->data + r->at + t->n * sizeof(int64_t);
	r->text_len = head[1] - t->n * sizeof(int64_t);
	memset(&r->worker, 0, sizeof(r->worker));
	if (!record_fields_read(r, t, r->data + r->at, e))
		return false;
	r->at += head[1];
	if (r->kind != REEXEC_STATE_ENDED && r->text_len && memchr(r->text, '\0', r->text_len))
		return err_set(e, ERR_INVALID, "state '%s': its text contains a NUL byte", t->name);
	return true;
}

static bool state_reader_open(struct state_reader *r, const struct reexec_state *s, struct err *e)
{
	uint32_t opening[2];

	*r = (struct state_reader){.data = s->data, .len = s->len};
	if (s->len < sizeof(opening))
		return err_set(e, ERR_INVALID, "invalid state: %zu bytes", s->len);
	memcpy(opening, s->data, sizeof(opening));
	if (opening[0] != REEXEC_STATE_MAGIC)
		return err_set(e, ERR_INVALID, "not a state of a spawner");
	if (opening[1] < REEXEC_STATE_VERSION_OLDEST || opening[1] > REEXEC_STATE_VERSION)
		return err_set(e, ERR_INVALID, "state version %u is not supported, only %d to %d", opening[1], REEXEC_STATE_VERSION_OLDEST,
			REEXEC_STATE_VERSION);
	r->at = sizeof(opening);
	return true;
}

/* ---- descriptors ---- */

static bool inherited_fd_claim(struct reexec_state *s, int fd, struct err *e)
{
	int flags = fd < 3 ? -1 : fcntl(fd, F_GETFD);

	if (flags < 0)
		return err_set(e, ERR_INVALID, "the state names descriptor %d, which is not open", fd);
	/* The old program has cleared it; it is set here when the descriptor is claimed. */
	if (flags & FD_CLOEXEC)
		return err_set(e, ERR_INVALID,
			"the state names descriptor %d twice, or it was not inherited", fd);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	s->fds.v = xrealloc(s->fds.v, (s->fds.n + 1) * sizeof(int));
	s->fds.v[s->fds.n++] = fd;
	return true;
}

static bool record_fds_claim(struct reexec_state *s, const struct state_reader *r, struct err *e)
{
	const struct reexec_state_table *t = &reexec_state_tables[r->kind];

	for (size_t i = 0; i < t->n; i++) {
		int fd;

		if (!t->fields[i].fd)
			continue;
		memcpy(&fd, (const char *)&r->head + t->fields[i].offset, sizeof(fd));
		if (fd >= 0 && !inherited_fd_claim(s, fd, e))
			return false;
	}
	return true;
}

static int fd_compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void unnamed_fds_close(struct reexec_state *s)
{
	unsigned next = 3;

	qsort(s->fds.v, s->fds.n, sizeof(int), fd_compare);
	for (size_t i = 0; i < s->fds.n; i++) {
		unsigned fd = (unsigned)s->fds.v[i];

		if (fd > next)
			close_range(next, fd - 1, 0);
		next = fd + 1;
	}
	close_range(next, ~0U, 0);
}

/* ---- validation of records ---- */

static bool worker_record_check(const struct worker *w, struct err *e)
{
	bool main = w->phase >= WORKER_RUNNING && w->phase <= WORKER_KILLED;

	if (w->run == 0 || w->phase == WORKER_OPENING || main != (w->exit.fd >= 0) ||
		(main && w->pid <= 0))
		return err_set(e, ERR_INVALID,
			"state 'worker': run %" PRId64 " does not fit its phase", w->run);
	return true;
}

static bool end_record_check(const struct state_reader *r, struct frame *f, struct err *e)
{
	memcpy(f, r->text, r->text_len);
	if (!frame_check(f, r->text_len, 0, FRAME_FROM_SPAWNER, FRAME_VERSION_STORED, e))
		return false;
	return f->type == FRAME_ENDED ||
		err_set(e, ERR_INVALID, "state 'ended': a frame of another type");
}

static bool record_check(struct reexec_state *s, struct state_reader *r, size_t nth, struct err *e)
{
	struct frame f;

	if ((nth == 0) != (r->kind == REEXEC_STATE_HEAD))
		return err_set(e, ERR_INVALID, "the head of the state is not its first record");
	switch (r->kind) {
	case REEXEC_STATE_HEAD:
		s->head = r->head;
		frame_text(s->head.id, sizeof(s->head.id), NULL);
		memcpy(s->head.id, r->text, r->text_len);
		return s->head.id[0] || err_set(e, ERR_INVALID, "state 'head': without an id");
	case REEXEC_STATE_WORKER:
		return worker_record_check(&r->worker, e);
	case REEXEC_STATE_ENDED:
		return end_record_check(r, &f, e);
	default:
		return true;
	}
}

/* ---- open, apply ---- */

static bool records_check(struct reexec_state *s, struct err *e)
{
	struct state_reader r;

	if (!state_reader_open(&r, s, e))
		return false;
	for (size_t nth = 0; r.kind != REEXEC_STATE_LAST; nth++)
		if (!record_read(&r, e) || !record_check(s, &r, nth, e) ||
			!record_fds_claim(s, &r, e))
			return false;
	return r.at == r.len ||
		err_set(e, ERR_INVALID, "the state has bytes after its last record");
}

bool reexec_state_parse(char *data, size_t len, struct reexec_state **ret, struct err *e)
{
	struct reexec_state *s = xcalloc(1, sizeof(*s));

	s->data = data;
	s->len = len;
	if (!records_check(s, e)) {
		reexec_state_free(s);
		return false;
	}
	*ret = s;
	return true;
}

bool reexec_state_open(int fd, struct reexec_state **ret, struct err *e)
{
	AUTO_TEXT data = NULL;
	size_t len, got = 0;

	if (!payload_sealed(fd, REEXEC_STATE_MAX, &len, e))
		return false;
	data = xcalloc(1, len + 1);
	while (got < len) {
		ssize_t n = pread(fd, data + got, len - got, (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, ERR_INVALID, "could not read the state");
		got += (size_t)n;
	}
	if (!reexec_state_parse(STEAL(data), len, ret, e))
		return false;
	unnamed_fds_close(*ret);
	return true;
}

void reexec_state_free(struct reexec_state *s)
{
	if (!s)
		return;
	free(s->data);
	reexec_state_fds_done(&s->fds);
	free(s);
}

const struct reexec_state_head *reexec_state_head(const struct reexec_state *s)
{
	return &s->head;
}

static void progress_apply(struct workers *ws, const struct reexec_state_progress *p, const char *text)
{
	struct worker *w = workers_find(ws, p->run, p->fence);

	if (!w || w->signs.progress)
		return;
	w->signs.progress = xcalloc(1, sizeof(*w->signs.progress));
	w->signs.progress->percent = p->percent;
	w->signs.progress->at = p->at;
	if (text)
		sign_text(text, strlen(text), w->signs.progress->text);
}

static bool record_apply(const struct state_reader *r, struct conns *cs, struct workers *ws,
	struct err *e)
{
	AUTO_TEXT text = r->text_len && r->kind != REEXEC_STATE_ENDED ? xstrndup(r->text, r->text_len) : NULL;
	struct frame f;

	switch (r->kind) {
	case REEXEC_STATE_CONN:
		return conns_resume(cs, &r->conn, text, e);
	case REEXEC_STATE_WORKER:
		return workers_adopt(ws, &r->worker, STEAL(text), e);
	case REEXEC_STATE_ENDED:
		if (!end_record_check(r, &f, e))
			return false;
		workers_add_ended(ws, &f.ended);
		workers_report_restore(ws, f.ended.run, f.ended.fence, r->ended.asked,
			r->ended.reports);
		return true;
	case REEXEC_STATE_PROGRESS:
		progress_apply(ws, &r->progress, text);
		return true;
	case REEXEC_STATE_RESULT:
		if (text && workers_find(ws, r->result.run, r->result.fence))
			worker_results_add(workers_find(ws, r->result.run, r->result.fence), text);
		return true;
	case REEXEC_STATE_ORPHAN:
		orphans_add(ws, &r->orphan);
		return true;
	default:
		return true;
	}
}

bool reexec_state_apply(const struct reexec_state *s, struct conns *cs, struct workers *ws,
	struct err *e)
{
	struct state_reader r;

	ws->nofile = (struct rlimit){(rlim_t)s->head.nofile_soft, (rlim_t)s->head.nofile_hard};
	if (!state_reader_open(&r, s, e))
		return false;
	while (r.kind != REEXEC_STATE_LAST)
		if (!record_read(&r, e) || !record_apply(&r, cs, ws, e))
			return false;
	return true;
}
