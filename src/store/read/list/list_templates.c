/* SPDX-License-Identifier: Apache-2.0 */
/* Reads templates. */
#include "store/read/list/list_templates.h"
#include "base/err.h"
#include "base/text.h"
#include "store/read/list/page.h"
#include "store/store_private.h"
#include "store/template.h"
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

bool list_templates_row(struct store *s, int64_t uid, const char *name, struct template *ret, struct err *e)
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

	if (!tx_begin(&tx, s, false, e) || !list_templates_row(s, uid, name, &found, e) ||
	    (!found.name && uid != 0 && !list_templates_row(s, 0, name, &found, e)) || !tx_commit(&tx, e))
		return false;
	if (!found.name) {
		err_field(e, "template", "no template '%.128s'; 'jobctl template list' shows all templates", name);
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
