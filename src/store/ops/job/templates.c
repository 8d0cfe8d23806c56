/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: made, replaced, removed and read. */
#include "store/ops/job/templates.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/events.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/read/page.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <string.h>

void template_done(struct template *t)
{
	free(t->name);
	free(t->owner);
	free(t->params);
	free(t->spec);
	*t = (struct template){};
}

void template_list_done(struct template_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		template_done(&l->v[i]);
	free(l->v);
	*l = (struct template_list){};
}

/* ---- writing ---- */

static bool templates_count(struct store *s, int64_t uid, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TEMPLATES_COUNT, e);

	query_int(&q, uid);
	query_int(&q, TEMPLATES_MAX + 1);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

static bool template_write(struct store *s, struct op_template *t, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TEMPLATE_PUT, e);

	query_int(&q, t->uid);
	query_text(&q, t->name);
	query_text(&q, t->owner);
	query_text(&q, t->params);
	query_text(&q, t->spec);
	query_int(&q, t->now);
	t->revision = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

static bool template_delete(struct store *s, struct op_template *t, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TEMPLATE_DROP, e);

	query_int(&q, t->uid);
	query_text(&q, t->name);
	t->revision = query_row(&q) ? query_get_int(&q) : 0;
	if (t->revision)
		owner_quota_add(s, t->uid, -query_get_int(&q));
	return !q.failed;
}

static int64_t template_bytes(const char *params, const char *spec)
{
	return TEMPLATE_BYTES + (int64_t)strlen(params) + (int64_t)strlen(spec);
}

static bool template_row_get(struct store *s, int64_t uid, const char *name, struct template *ret, struct err *e);

static bool template_put(struct store *s, struct op *op, struct err *e)
{
	AUTO_DONE(template) known = {};
	struct op_template *t = template_op(op);
	int64_t n, more = template_bytes(t->params, t->spec);
	struct err why = {};

	if (!template_row_get(s, t->uid, t->name, &known, e) || !templates_count(s, t->uid, &n, e))
		return false;
	if (known.name)
		more -= template_bytes(known.params, known.spec);
	if (more > 0 && !owner_quota_check(s, t->uid, t->owner, more, t->bytes_limit, &why, e))
		return false;
	if (why.kind)
		return op_refuse(op, why.kind, "%s", why.msg);
	if (!known.name && n >= TEMPLATES_MAX)
		return op_refuse(op, ERR_LIMIT, "'%s' has %lld templates, more are not allowed; remove some with "
			"'jobctl template rm'", template_op(op)->owner, (long long)n);
	owner_quota_add(s, t->uid, more);
	return template_write(s, t, e);
}

static bool template_remove(struct store *s, struct op *op, struct err *e)
{
	if (!template_delete(s, template_op(op), e))
		return false;
	return template_op(op)->revision || op_refuse(op, ERR_NOT_FOUND, "no template '%s' of yours; 'jobctl template list' "
		"shows those there are", template_op(op)->name);
}

bool template_op_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct op_template *t = template_op(ops[i]);
		bool put_it = ops[i]->kind == OP_TEMPLATE_PUT;

		if (!(put_it ? template_put : template_remove)(s, ops[i], e))
			return false;
		if (ops[i]->ok)
			event_add(s, &(struct event_new){.at = t->now, .by = &ops[i]->act.by, .object = t->name,
				.what = put_it ? EVENT_TEMPLATE_PUT : EVENT_TEMPLATE_REMOVE});
	}
	return true;
}

/* ---- reading ---- */

static void template_row_read(struct query *q, struct template *t)
{
	t->uid = query_get_int(q);
	t->name = query_get_copy(q);
	t->owner = query_get_copy(q);
	t->revision = query_get_int(q);
	t->params = query_get_copy(q);
	t->spec = query_get_copy(q);
	t->created_at = query_get_int(q);
	t->updated_at = query_get_int(q);
}

static bool template_row_get(struct store *s, int64_t uid, const char *name, struct template *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TEMPLATE_GET, e);

	query_int(&q, uid);
	query_text(&q, name);
	if (query_row(&q))
		template_row_read(&q, ret);
	return !q.failed;
}

bool list_templates_get(struct store *s, int64_t uid, const char *name, struct template *ret, struct err *e)
{
	AUTO_DONE(template) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !template_row_get(s, uid, name, &found, e) ||
	    (!found.name && uid != 0 && !template_row_get(s, 0, name, &found, e)) || !tx_commit(&tx, e))
		return false;
	if (!found.name) {
		err_field(e, "template", "no template '%.128s'; 'jobctl template list' shows those there are", name);
		if (e)
			e->kind = ERR_NOT_FOUND;
		return false;
	}
	*ret = found;
	found = (struct template){};
	return true;
}

static bool templates_read_part(struct store *s, int64_t uid, const char *after, size_t limit, struct template_list *ret,
	struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TEMPLATES_OF, e);

	query_int(&q, uid);
	query_text(&q, after);
	query_int(&q, (int64_t)limit);
	while (query_row(&q)) {
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n] = (struct template){};
		template_row_read(&q, &ret->v[ret->n++]);
	}
	return !q.failed;
}

static bool templates_read(struct store *s, int64_t uid, const char *after, size_t limit, struct template_list *ret,
	struct err *e)
{
	size_t bytes = 0, n = 0;

	while (ret->n < limit && (n = page_chunk(ret->n, bytes, limit, PAGE_BYTES)) > 0) {
		size_t from = ret->n;

		if (!templates_read_part(s, uid, from ? ret->v[from - 1].name : after, n, ret, e))
			return false;
		for (size_t i = from; i < ret->n; i++)
			bytes += strlen(ret->v[i].spec) + strlen(ret->v[i].params);
		if (ret->n < from + n)
			return true;
	}
	ret->more = ret->n < limit;
	return true;
}

bool list_templates_page(struct store *s, int64_t uid, const char *after, size_t limit, struct template_list *ret,
	struct err *e)
{
	AUTO_DONE(template_list) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !templates_read(s, uid, after, limit, &found, e) || !tx_commit(&tx, e))
		return false;
	*ret = found;
	found = (struct template_list){};
	return true;
}

void template_op_reset(struct op *op)
{
	template_op(op)->revision = 0;
}
