/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the audit events of a batch, inserted with its commit. */
#include "store/events.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/set.h"
#include "store/store_private.h"

#define CHUNK 1000 /* events per statement; adding many jobs makes many events */

void event_add(struct store *s, const struct event_new *n)
{
	event_list_add(&s->events, event_make(n));
}

size_t event_mark(const struct store *s)
{
	return s->events.n;
}

void event_rewind(struct store *s, size_t mark)
{
	event_list_cut(&s->events, mark);
}

/* Leaves out NULL members: most events have no node and no detail. */
static void set_some(struct set *set, const char *name, const char *v)
{
	if (v)
		set_text(set, name, v);
}

static void event_describe(struct set *set, const struct event *ev)
{
	set_item(set);
	set_int(set, "at", ev->at);
	set_int(set, "uid", ev->uid);
	set_int(set, "owner", ev->owner);
	set_some(set, "who", ev->who);
	set_some(set, "origin", ev->origin);
	set_text(set, "what", event_what_name(ev->what));
	set_some(set, "object", ev->object);
	set_int(set, "job", ev->job);
	set_int(set, "run", ev->run);
	set_some(set, "node", ev->node);
	set_text(set, "result", ev->result);
	set_some(set, "detail", ev->detail);
}

static bool events_lock(struct store *s, struct err *e)
{
	AUTO_QUERY q = {};

	if (!s->db->ops->reconnects)
		return true;
	q = query_start(s->db, Q_EVENTS_LOCK, e);
	return query_finish(&q);
}

bool event_write(struct store *s, struct err *e)
{
	if (s->events.n > 0 && !events_lock(s, e))
		return false;
	for (size_t from = 0; from < s->events.n; from += CHUNK) {
		AUTO_SET set = {};

		for (size_t i = from; i < s->events.n && i < from + CHUNK; i++)
			event_describe(&set, s->events.v[i]);
		if (!set_execute(s, Q_EVENTS_INSERT, &set, e))
			return false;
	}
	return true;
}

void event_take_written(struct store *s, struct event_list *ret)
{
	*ret = s->events;
	s->events = (struct event_list){};
}

