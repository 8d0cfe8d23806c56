/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on templates: create, replace, remove. */
#include "store/ops/job/templates.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/events.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/read/list/list_templates.h"
#include "store/read/list/page.h"
#include "store/store_private.h"
#include "store/template.h"
#include "store/tx.h"
#include <string.h>

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

static bool template_put(struct store *s, struct op *op, struct err *e)
{
	AUTO_DONE(template) known = {};
	struct op_template *t = template_op(op);
	int64_t n, more = template_bytes(t->params, t->spec);
	struct err why = {};

	if (!list_templates_row(s, t->uid, t->name, &known, e) || !templates_count(s, t->uid, &n, e))
		return false;
	if (known.name)
		more -= template_bytes(known.params, known.spec);
	if (more > 0 && !owner_quota_check(s, t->uid, 0, t->owner, more, t->bytes_limit, &why, e))
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
		"shows all templates", template_op(op)->name);
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

void template_op_reset(struct op *op)
{
	template_op(op)->revision = 0;
}
