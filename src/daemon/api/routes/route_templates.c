/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for templates: list, show, store, remove. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/api/submit/template.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/user_lookup.h"
#include "daemon/loop/warrants.h"
#include "daemon/schedule/dispatcher.h"
#include "store/ops/job/templates.h"
#include "store/ops/op.h"
#include "store/read/list/list_templates.h"
#include "store/store.h"
#include "store/template.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <string.h>

/* A read of one template or of all, or the context of an operation. */
struct template_query {
	struct store_read q;
	int64_t uid;
	bool user_mode;
	usec_t now;
	char *name;           /* owned */
	char *cursor;         /* owned: "own NAME" or "shared NAME"; NULL: from the start */
	size_t limit;
	char *owner;          /* owned */
	char *params, *spec;  /* owned: JSON texts to store; NULL: remove the template */
	struct ticket *ticket;
};

static void template_query_free(struct template_query *t)
{
	free(t->name);
	free(t->cursor);
	free(t->owner);
	free(t->params);
	free(t->spec);
	free(t);
}

static void free_template_query(struct store_read *q)
{
	template_query_free((struct template_query *)q);
}

static struct template_query *template_query_new(struct request *r,
	bool (*run)(struct store *, struct store_read *, struct err *))
{
	struct template_query *t = xcalloc(1, sizeof(*t));

	t->uid = request_owner(r);
	t->user_mode = r->context->user_mode;
	t->now = request_now(r);
	t->name = xstrdup(r->params[0]);
	t->q.run = run;
	t->q.free = free_template_query;
	return t;
}

static void write_json(struct store_read *q, json_t *o /* moved */)
{
	json_value_write(o, &q->out);
	json_decref(o);
}

/* ---- show, list ---- */

static bool read_template_shown(struct store *s, struct store_read *q, struct err *e)
{
	struct template_query *t = (struct template_query *)q;
	AUTO_DONE(template) found = {};

	if (!list_templates_get(s, t->uid, t->name, &found, e))
		return false;
	write_json(q, template_to_json(&found, true));
	buf_char(&q->out, '\n');
	return true;
}

void route_template_get(struct request *r)
{
	store_read_start(r, &template_query_new(r, read_template_shown)->q);
}

/*
 * Writes the templates of one owner after a name. *left is the number of rows left on the page;
 * *ret_next is set to the last name if there are more.
 */
static bool write_owner_templates(struct store *s, struct store_read *q, int64_t uid,
	const char *after, size_t *left, char **ret_next, struct err *e)
{
	AUTO_DONE(template_list) l = {};

	if (!list_templates_page(s, uid, after, *left + 1, &l, e))
		return false;
	for (size_t i = 0; i < l.n && i < *left; i++) {
		if (q->out.data[q->out.len - 1] != '[')
			buf_char(&q->out, ',');
		write_json(q, template_to_json(&l.v[i], false));
	}
	if (l.n > *left)
		*ret_next = xstrdup(*left ? l.v[*left - 1].name : after);
	else if (l.more)
		*ret_next = xstrdup(l.v[l.n - 1].name);
	*left -= l.n < *left ? l.n : *left;
	return true;
}

static bool read_template_list(struct store *s, struct store_read *q, struct err *e)
{
	static const char own[] = "own ", shared[] = "shared ";
	struct template_query *t = (struct template_query *)q;
	bool later = t->cursor && text_starts(t->cursor, shared);
	const char *after = later	? t->cursor + strlen(shared)
			    : t->cursor ? t->cursor + strlen(own)
					: "";
	const char *word = own;
	AUTO_TEXT next = NULL;
	AUTO_DONE(buf) cursor = {};

	if (t->cursor && !later && !text_starts(t->cursor, own))
		return err_field(e, "cursor", "'%.40s' is not a cursor of this list", t->cursor);
	buf_str(&q->out, "{\"templates\":[");
	if (!later && !write_owner_templates(s, q, t->uid, after, &t->limit, &next, e))
		return false;
	if (!next && t->uid != 0) {
		word = shared;
		if (!write_owner_templates(s, q, 0, later ? after : "", &t->limit, &next, e))
			return false;
	}
	if (next)
		buf_printf(&cursor, "%s%s", word, next);
	buf_str(&q->out, "],\"next_cursor\":");
	buf_json_str(&q->out, cursor.data);
	buf_str(&q->out, "}\n");
	return true;
}

void route_template_list(struct request *r)
{
	struct template_query *t = template_query_new(r, read_template_list);

	t->cursor = xstrdup(request_text(r, "cursor"));
	t->limit = (size_t)request_number(r, "limit", 100);
	store_read_start(r, &t->q);
}

/* ---- put, remove ---- */

static void on_stored(struct op *op, void *arg)
{
	struct template_query *t = arg;
	struct request *r = request_ticket_redeem(t->ticket);

	if (r && !op->ok)
		request_answer_err(r, &op->err);
	else if (r)
		request_answer_json(r,
			op->kind == OP_TEMPLATE_PUT && template_op(op)->revision == 1 ? 201 : 200,
			json_pack("{s:o, s:I}", "name", json_value_text(t->name), "revision",
				(json_int_t)template_op(op)->revision));
	op_free(op);
	template_query_free(t);
}

static void submit_template(struct request *r, struct store_read *q)
{
	struct template_query *from = (struct template_query *)q, *t = xcalloc(1, sizeof(*t));
	struct op *op;

	*t = (struct template_query){.uid = from->uid,
		.now = from->now,
		.name = STEAL(from->name),
		.owner = STEAL(from->owner),
		.params = STEAL(from->params),
		.spec = STEAL(from->spec)};
	op = op_new(t->spec ? OP_TEMPLATE_PUT : OP_TEMPLATE_REMOVE, on_stored, t);
	op_fill(template_op(op), .uid = t->uid,
		.owner = t->owner,
		.name = t->name,
		.params = t->params,
		.spec = t->spec,
		.now = t->now,
		.bytes_limit = client_user_store_limit(r));
	t->ticket = request_ticket(r, true);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

static bool run_owner(struct store *s, struct store_read *q, struct err *e)
{
	struct template_query *t = (struct template_query *)q;

	(void)s;
	return t->owner || user_lookup_name(owner_uid(t->uid), t->user_mode, &t->owner, e);
}

/* Converts the body to the two texts that the store keeps. */
static bool read_template_body(const struct request *r, struct template_query *t, struct err *e)
{
	json_auto_t *body =
		json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);
	AUTO_DONE(job_spec) spec;
	AUTO_DONE(strv) params = {};
	AUTO_DONE(buf) text = {};
	json_auto_t *declared = NULL;

	job_spec_init(&spec);
	if (!body || !template_read(body, &spec, &params, e))
		return false;
	if (!warrants_check(spawner_link_warrants(r->context->spawner), t->uid, spec.warrant, e))
		return false;
	declared = template_params_write(&params);
	json_value_write(declared, &text);
	t->params = buf_steal(&text);
	t->spec = spec_json_to_text(&spec);
	if (strlen(t->params) + strlen(t->spec) > TEMPLATE_BYTES_MAX)
		return err_set(e, ERR_TOO_LARGE, "a template may have at most %d bytes",
			TEMPLATE_BYTES_MAX);
	return true;
}

static void start_template_change(struct request *r, bool put)
{
	struct template_query *t = template_query_new(r, run_owner);
	struct err e = {}, why = {};

	t->owner = xstrdup(client_user_owner_name(r));
	t->q.then = submit_template;
	if (!job_name_check(t->name, &why))
		err_field(&e, "name",
			"'%.128s' is not a valid template name: letters, digits, '.', '_' and '-' "
			"are allowed",
			t->name);
	else if (!put || read_template_body(r, t, &e)) {
		store_read_start(r, &t->q);
		return;
	}
	request_answer_err(r, &e);
	template_query_free(t);
}

void route_template_put(struct request *r)
{
	start_template_change(r, true);
}

void route_template_remove(struct request *r)
{
	start_template_change(r, false);
}
