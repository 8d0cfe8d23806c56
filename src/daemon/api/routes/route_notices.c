/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for notices: list, test. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/notice.h"
#include "core/job/owner.h"
#include "daemon/api/client_user.h"
#include "daemon/api/stream/list_stream.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "store/notice_row.h"
#include "store/ops/notices.h"
#include "store/ops/op.h"
#include "store/read/list/list_notices.h"
#include "store/store.h"
#include "wire/json_value.h"
#include <string.h>

static json_t *notice_to_json(const struct notice *n)
{
	return json_pack("{s:I, s:I, s:o, s:o, s:I, s:o, s:s, s:o, s:s, s:I, s:o, s:o, s:o, s:o}",
		"id", (json_int_t)n->id, "job", (json_int_t)n->job, "job_name",
		json_value_text(n->job_name), "run",
		n->run ? json_integer((json_int_t)n->run) : json_null(), "uid",
		(json_int_t)owner_uid(n->uid), "owner", json_value_text(n->owner), "kind",
		notice_kind_name(n->kind), "channel", json_value_text(n->channel), "state",
		notice_state_name(n->state), "tries", (json_int_t)n->tries, "created_at",
		json_value_time(n->created_at), "due_at",
		json_value_time(n->state == NOTICE_WAITING ? n->due_at : 0), "done_at",
		json_value_time(n->done_at), "error", json_value_text(n->error));
}

/* ---- the list ---- */

struct notice_page {
	struct list_stream list;
	struct notice_filter filter;
	char *job; /* owned; as given in the request */
};

static bool step_notices(struct store *s, struct list_stream *l, size_t n, struct buf *out,
	size_t *ret_n, bool *ret_more, struct err *e)
{
	struct notice_page *p = (struct notice_page *)l;
	AUTO_DONE(notice_list) rows = {};

	if (p->job && !p->filter.job) {
		AUTO(job) *j = NULL;

		if (!store_read_job(s, l->scope, p->job, &j, e))
			return false;
		p->filter.job = j->id;
	}
	p->filter.uid = l->scope;
	p->filter.before = l->cursor;
	p->filter.limit = n;
	if (!list_notices_page(s, &p->filter, &rows, e))
		return false;
	for (size_t i = 0; i < rows.n; i++) {
		json_auto_t *o = notice_to_json(rows.v[i]);

		list_stream_comma(l, out);
		json_value_write(o, out);
	}
	*ret_n = rows.n;
	*ret_more = rows.next != 0;
	l->cursor = rows.next;
	return true;
}

static void free_notice_page(struct list_stream *l)
{
	free(((struct notice_page *)l)->job);
	free(l);
}

static bool read_notice_states(const char *text, unsigned *ret, struct err *e)
{
	while (text && *text) {
		size_t len = strcspn(text, ",");
		AUTO_TEXT word = xstrndup(text, len);
		enum notice_state state;

		if (!notice_state_parse(word, &state))
			return err_field(e, "state",
				"there is no state '%.40s'; notices are waiting, sent or failed",
				word);
		*ret |= 1u << state;
		text += len + (text[len] == ',');
	}
	return true;
}

void route_notice_list(struct request *r)
{
	struct notice_page *p = xcalloc(1, sizeof(*p));
	struct err e = {};

	p->list = (struct list_stream){.name = "notices",
		.step = step_notices,
		.free = free_notice_page,
		.left = (size_t)request_number(r, "limit", 100)};
	p->job = xstrdup(request_text(r, "job"));
	if (read_notice_states(request_text(r, "state"), &p->filter.states, &e) &&
		list_stream_cursor(r, &p->list.cursor, &e)) {
		list_stream_answer(r, &p->list);
		return;
	}
	request_answer_err(r, &e);
	free_notice_page(&p->list);
}

/* ---- test notice ---- */

static void on_test_notices_added(struct op *op, void *arg)
{
	struct request *r = request_ticket_redeem(arg);
	const struct notice_list *added = &notice_add_op(op)->added;
	json_t *all;

	if (r && !op->ok) {
		request_answer_err(r, &op->err);
	} else if (r && added->n == 0) {
		struct err e = {};

		err_set(&e, ERR_CONFLICT,
			"the job has no notify channel; add one (jobctl set JOB "
			"notify=mail:ADDRESS)");
		request_answer_err(r, &e);
	} else if (r) {
		all = json_array();
		for (size_t i = 0; i < added->n; i++)
			json_array_append_new(all, notice_to_json(added->v[i]));
		request_answer_json(r, 201, json_pack("{s:o}", "notices", all));
	}
	op_free(op);
}

struct test_query {
	struct store_read q;
	char *ref; /* owned */
	int64_t job;
};

static bool find_tested_job(struct store *s, struct store_read *q, struct err *e)
{
	struct test_query *t = (struct test_query *)q;
	AUTO(job) *j = NULL;

	if (!store_read_job(s, q->scope, t->ref, &j, e))
		return false;
	t->job = j->id;
	return true;
}

static void on_tested_job_found(struct request *r, struct store_read *q)
{
	struct op *op = op_new(OP_NOTICE_ADD, on_test_notices_added, request_ticket(r, true));

	op_fill(notice_add_op(op), .uid = request_scope(r),
		.job = ((struct test_query *)q)->job,
		.kind = NOTICE_KIND_TEST,
		.now = request_now(r));
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

static void free_test(struct store_read *q)
{
	free(((struct test_query *)q)->ref);
	free(q);
}

void route_notice_test(struct request *r)
{
	struct test_query *t;
	struct err e = {};

	if (!client_user_take_submission(r, &e)) {
		request_answer_err(r, &e);
		return;
	}
	t = xcalloc(1, sizeof(*t));
	*t = (struct test_query){
		.q = {.run = find_tested_job, .then = on_tested_job_found, .free = free_test},
		.ref = xstrdup(r->params[0])};
	store_read_start(r, &t->q);
}
