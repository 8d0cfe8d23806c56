/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the rows of the token table in a map by their id. */
#include "daemon/api/auth/token_cache.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/loop/store_thread.h"
#include "store/read/list/list_tokens.h"
#include "store/token_row.h"
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#define POLL_EVERY (2 * USEC_SEC)

struct token_cache {
	struct store_thread *store; /* borrowed */
	sd_event_source *timer;
	struct token_read *reading; /* NULL: no read in progress */
	bool changed;               /* during the read: its result is discarded */
	int64_t version;            /* of the rows */
	struct map rows;            /* struct token_row by id, owned */
};

struct token_read {
	struct read_task task;
	struct token_cache *cache; /* NULL: freed meanwhile */
	int64_t known, version;
	struct token_row_list rows;
	bool ok;
};

/* ---- rows ---- */

static int64_t id_key(const char *id)
{
	return (int64_t)strtoull(id, NULL, 16);
}

static void drop_row(struct token_cache *c, const struct token_row *row)
{
	struct token_row *t = map_take(&c->rows, id_key(row->id));

	token_row_done(t);
	free(t);
}

static void drop_rows(struct token_cache *c)
{
	struct token_row *t;

	for (size_t i = 0; (t = map_next(&c->rows, &i));)
		drop_row(c, t);
}

static void take_row(struct token_cache *c, struct token_row *row /* contents moved */)
{
	struct token_row *old = map_get(&c->rows, id_key(row->id)), *t = xcalloc(1, sizeof(*t));

	if (old)
		drop_row(c, old);
	*t = *row;
	*row = (struct token_row){};
	map_put(&c->rows, id_key(t->id), t);
}

void token_cache_put(struct token_cache *c, const struct token_row *row)
{
	struct token_row copy = *row;

	copy.id = xstrdup(row->id);
	copy.name = xstrdup(row->name);
	copy.owner_name = xstrdup(row->owner_name);
	copy.scope = xstrdup(row->scope);
	copy.hash = xstrdup(row->hash);
	copy.parent = xstrdup(row->parent);
	copy.created_by = xstrdup(row->created_by);
	take_row(c, &copy);
	c->changed = true;
}

void token_cache_remove(struct token_cache *c, const char *id)
{
	const struct token_row *own = map_get(&c->rows, id_key(id));
	struct token_row *t;

	for (size_t i = 0; (t = map_next(&c->rows, &i));)
		if (t != own && text_equal(t->parent, id))
			drop_row(c, t);
	if (own)
		drop_row(c, own);
	c->changed = true;
}

bool token_cache_has(const struct token_cache *c, const char *id)
{
	return map_get(&c->rows, id_key(id)) != NULL;
}

bool token_cache_is_empty(const struct token_cache *c)
{
	size_t i = 0;

	return !map_next(&c->rows, &i);
}

const struct token_row *token_cache_find(const struct token_cache *c, const struct token_text *t,
	usec_t now)
{
	static const char none[TOKEN_HASH_LEN + 1] = "";
	const struct token_row *row = map_get(&c->rows, id_key(t->id));
	char hash[TOKEN_HASH_LEN + 1];
	bool known = row && strlen(row->hash) == TOKEN_HASH_LEN && text_equal(row->id, t->id);

	/* an unknown id takes the same time as a wrong secret */
	token_text_hash(t, hash);
	known = token_hash_equal(hash, known ? row->hash : none) && known;
	return known && (row->expires_at == 0 || row->expires_at > now) ? row : NULL;
}

/* ---- reading ---- */

static void work_tokens(struct store *s, struct read_task *task)
{
	struct token_read *r = (struct token_read *)task;
	struct err e = {};

	r->ok = list_tokens_version(s, &r->version, &e) &&
		(r->version == r->known || list_tokens_read(s, OWNER_ALL, &r->rows, &e));
	if (!r->ok)
		log_debug("could not read the tokens: %s", e.msg);
}

static void start_token_read(struct token_cache *c);

static void tokens_done(struct read_task *task)
{
	struct token_read *r = (struct token_read *)task;
	struct token_cache *c = r->cache;

	if (c) {
		c->reading = NULL;
		if (r->ok && r->version != c->version && !c->changed) {
			drop_rows(c);
			for (size_t i = 0; i < r->rows.n; i++)
				take_row(c, &r->rows.v[i]);
			c->version = r->version;
		}
		if (c->changed)
			start_token_read(c);
	}
	token_row_list_done(&r->rows);
	free(r);
}

static void start_token_read(struct token_cache *c)
{
	struct token_read *r;

	if (c->reading)
		return;
	c->changed = false;
	r = xcalloc(1, sizeof(*r));
	r->task.work = work_tokens;
	r->task.done = tokens_done;
	r->cache = c;
	r->known = c->version;
	c->reading = r;
	store_thread_read(c->store, &r->task);
}

static int on_poll_tokens(sd_event_source *src, uint64_t when, void *arg)
{
	struct token_cache *c = arg;

	(void)when;
	start_token_read(c);
	sd_event_source_set_time_relative(src, POLL_EVERY);
	sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
	return 0;
}

bool token_cache_new(struct sd_event *ev, struct store_thread *store, struct token_cache **ret,
	struct err *e)
{
	AUTO(token_cache) *c = xcalloc(1, sizeof(*c));
	int r;

	c->store = store;
	c->version = -1;
	r = sd_event_add_time_relative(ev, &c->timer, CLOCK_MONOTONIC, POLL_EVERY, USEC_SEC / 10,
		on_poll_tokens, c);
	if (r < 0)
		return err_errno(e, -r, "could not add the timer of the tokens");
	start_token_read(c);
	*ret = STEAL(c);
	return true;
}

void token_cache_free(struct token_cache *c)
{
	if (!c)
		return;
	if (c->reading)
		c->reading->cache = NULL;
	sd_event_source_disable_unref(c->timer);
	drop_rows(c);
	map_done(&c->rows);
	free(c);
}
