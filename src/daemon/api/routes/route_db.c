/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for the whole store: prune, backup, check. */
#include "base/auto.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/job.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/retention/retention.h"
#include "store/ops/event_op.h"
#include "store/ops/op.h"
#include "store/read/check.h"
#include "store/read/prune_candidates.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEEP_MIN USEC_HOUR /* newer history is never deleted */

/* Records the action in the audit trail although it does not change the store. */
static void audit_note(struct request *r, const char *detail)
{
	struct op *op = op_new(OP_EVENT, NULL, NULL);

	event_op(op)->now = request_now(r);
	snprintf(event_op(op)->detail, sizeof(event_op(op)->detail), "%s", detail);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

/* ---- prune ---- */

static bool duration_member(const json_t *o, const char *name, usec_t *ret, struct err *e)
{
	const json_t *v = json_object_get(o, name);
	struct err why = {};

	if (!v)
		return true;
	if (json_is_string(v) ? !duration_parse(json_string_value(v), ret, &why)
			      : !json_is_number(v) || json_number_value(v) < 0 ||
					json_number_value(v) >= 1e10)
		return err_field(e, name,
			"'%s' must be a duration that is not negative: seconds, or a text like 30d",
			name);
	if (json_is_number(v))
		*ret = (usec_t)(json_number_value(v) * (double)USEC_SEC);
	return *ret >= KEEP_MIN || err_field(e, name, "'%s' must be at least an hour", name);
}

static bool read_rule(const struct request *r, struct prune_rule *rule, struct err *e)
{
	json_auto_t *o = NULL;
	const char *name;
	json_t *v;

	if (r->body.len == 0)
		return true;
	o = json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);
	if (!o)
		return false;
	json_object_foreach(o, name,
		v) if (strcmp(name, "older_than") != 0 && strcmp(name, "keep_runs") != 0 &&
		       strcmp(name, "dead_older_than") != 0) return err_field(e, name,
		"unknown member '%.40s'; known are older_than, keep_runs and dead_older_than",
		name);
	v = json_object_get(o, "keep_runs");
	if (v && (!json_is_integer(v) || json_integer_value(v) < 0))
		return err_field(e, "keep_runs", "'keep_runs' must be a whole number");
	if (v)
		rule->runs = json_integer_value(v);
	return duration_member(o, "older_than", &rule->age, e) &&
	       duration_member(o, "dead_older_than", &rule->dead_age, e);
}

static void on_history_pruned(const struct retention_report *p, void *arg)
{
	struct request *r = request_ticket_redeem(arg);
	struct err e = {};
	char detail[160];

	if (!r)
		return;
	if (!p->ok) {
		err_set(&e, ERR_BUSY, "%s", p->why);
		request_answer_err(r, &e);
		return;
	}
	snprintf(detail, sizeof(detail), "%" PRId64 " runs, %" PRId64 " jobs, %" PRId64 " events",
		p->runs, p->jobs, p->events);
	audit_note(r, detail);
	request_answer_json(r, 200,
		json_pack("{s:I, s:I, s:I, s:I, s:I}", "runs", (json_int_t)p->runs, "jobs",
			(json_int_t)p->jobs, "events", (json_int_t)p->events, "outputs",
			(json_int_t)p->outputs, "output_bytes", (json_int_t)p->output_bytes));
}

void route_db_prune(struct request *r)
{
	struct prune_rule rule;
	struct err e = {};

	if (!r->context->retention) {
		err_set(&e, ERR_BUSY, "the daemon is still starting; try again");
		request_answer_err(r, &e);
		return;
	}
	rule = retention_rule(r->context->retention);
	if (!read_rule(r, &rule, &e)) {
		request_answer_err(r, &e);
		return;
	}
	retention_now(r->context->retention, &rule, on_history_pruned, request_ticket(r, true));
}

/* ---- check ---- */

struct check {
	struct store_read q;
	usec_t began;
};

static json_t *text_list(const struct strv *texts)
{
	json_t *list = json_array();

	for (size_t i = 0; i < texts->n; i++)
		json_array_append_new(list, json_value_text(texts->v[i]));
	return list;
}

static bool run_check(struct store *s, struct store_read *q, struct err *e)
{
	AUTO_DONE(strv) problems = {};
	AUTO_DONE(strv) unsafe = {};
	json_t *o;

	if (!check_store(s, &problems, e) || !check_unsafe_settings(s, &unsafe, e))
		return false;
	o = json_pack("{s:b, s:o, s:o}", "ok", problems.n == 0, "problems", text_list(&problems),
		"unsafe_settings", text_list(&unsafe));
	json_value_write(o, &q->out);
	buf_char(&q->out, '\n');
	json_decref(o);
	return true;
}

static void free_check(struct store_read *q)
{
	free((struct check *)q);
}

void route_db_check(struct request *r)
{
	struct check *c = xcalloc(1, sizeof(*c));

	c->q.run = run_check;
	c->q.free = free_check;
	store_read_start_long(r, &c->q);
}

/* ---- backup ---- */

/* The copy is unlinked before it is sent, so that it is always removed. */
struct copy {
	struct store_read q;
	char *path; /* owned */
	int fd;
};
struct backup_stream {
	struct stream stream;
	int fd;
};

static bool run_copy(struct store *s, struct store_read *q, struct err *e)
{
	struct copy *c = (struct copy *)q;
	bool ok = backup_create(s, c->path, e);

	if (ok) {
		c->fd = open(c->path, O_RDONLY | O_CLOEXEC);
		ok = c->fd >= 0 || err_errno(e, errno, "could not open the copy '%s'", c->path);
	}
	unlink(c->path);
	return ok;
}

static void free_copy(struct store_read *q)
{
	struct copy *c = (struct copy *)q;

	if (c->fd >= 0)
		close(c->fd);
	free(c->path);
	free(c);
}

static ssize_t backup_stream_read(struct stream *s, char *out, size_t max)
{
	ssize_t n = read(((struct backup_stream *)s)->fd, out, max);

	if (n < 0)
		log_warning("could not read the copy of the store: %m");
	return n > 0 ? n : n == 0 ? STREAM_END : STREAM_BROKEN;
}

static void backup_stream_free(struct stream *s)
{
	close(((struct backup_stream *)s)->fd);
	free((struct backup_stream *)s);
}

static void send_copy(struct request *r, struct store_read *q)
{
	struct copy *c = (struct copy *)q;
	struct backup_stream *s = xcalloc(1, sizeof(*s));
	struct stat st = {};
	char bytes[24], detail[64];
	const struct stream_header headers[] = {{"X-Jobsched-Bytes", bytes}};

	fstat(c->fd, &st);
	snprintf(bytes, sizeof(bytes), "%lld", (long long)st.st_size);
	snprintf(detail, sizeof(detail), "%s bytes", bytes);
	audit_note(r, detail);
	s->fd = STEAL_FD(c->fd);
	s->stream = (struct stream){.read = backup_stream_read, .free = backup_stream_free};
	request_answer_stream(r, "application/octet-stream", headers, ELEMENTS(headers),
		&s->stream);
}

void route_db_backup(struct request *r)
{
	struct copy *c = xcalloc(1, sizeof(*c));
	char id[RANDOM_ID_LEN + 1];

	io_random_id(id);
	c->path = xprintf("%s/backup-%.12s.tmp", r->context->state_dir, id);
	c->fd = -1;
	c->q.run = run_copy;
	c->q.then = send_copy;
	c->q.free = free_copy;
	store_read_start_long(r, &c->q);
}
