/* SPDX-License-Identifier: Apache-2.0 */
/* Names of event types, and memory management of events. */
#include "core/job/event.h"
#include "base/text.h"
#include <string.h>

static const char *const names[EVENT_WHAT_MAX] = {
	[EVENT_NONE] = "none",
	[EVENT_JOB_ADD] = "job.add",
	[EVENT_JOB_CANCEL] = "job.cancel",
	[EVENT_JOB_REMOVE] = "job.remove",
	[EVENT_JOB_CHANGE] = "job.change",
	[EVENT_JOB_UNDO] = "job.undo",
	[EVENT_JOB_PAUSE] = "job.pause",
	[EVENT_JOB_RESUME] = "job.resume",
	[EVENT_JOB_SUSPEND] = "job.suspend",
	[EVENT_RUN_TRIGGER] = "run.trigger",
	[EVENT_RUN_CANCEL] = "run.cancel",
	[EVENT_RUN_DEAD] = "run.dead",
	[EVENT_RUN_START] = "run.start",
	[EVENT_RUN_END] = "run.end",
	[EVENT_DEAD_RETRY] = "dead.retry",
	[EVENT_DEAD_PURGE] = "dead.purge",
	[EVENT_PAUSE] = "pause",
	[EVENT_RESUME] = "resume",
	[EVENT_FREEZE] = "freeze",
	[EVENT_THAW] = "thaw",
	[EVENT_QUEUE_SET] = "queue.set",
	[EVENT_QUEUE_REMOVE] = "queue.remove",
	[EVENT_LIMIT_SET] = "limit.set",
	[EVENT_LIMIT_REMOVE] = "limit.remove",
	[EVENT_TEMPLATE_PUT] = "template.put",
	[EVENT_TEMPLATE_REMOVE] = "template.remove",
	[EVENT_TOKEN_ADD] = "token.add",
	[EVENT_TOKEN_REMOVE] = "token.remove",
	[EVENT_SESSION_OPEN] = "session.open",
	[EVENT_SESSION_CLOSE] = "session.close",
	[EVENT_NOTICE_TEST] = "notice.test",
	[EVENT_NOTICE_FAILED] = "notice.failed",
	[EVENT_NODE_OPEN] = "node.open",
	[EVENT_NODE_CLOSE] = "node.close",
	[EVENT_NODE_SET] = "node.set",
	[EVENT_NODE_LEADS] = "node.leads",
	[EVENT_NODE_LOST] = "node.lost",
	[EVENT_NODE_ALARM] = "node.alarm",
	[EVENT_DB_PRUNE] = "db.prune",
	[EVENT_DB_BACKUP] = "db.backup",
	[EVENT_DB_RESTORE] = "db.restore",
	[EVENT_REFUSED_MORE] = "refused.more",
	[EVENT_RUN_PROGRESS] = "run.progress",
};
_Static_assert(EVENT_WHAT_MAX <= 64, "the filter has one bit for each");

const char *event_what_name(enum event_what w)
{
	return (size_t)w < EVENT_WHAT_MAX ? names[w] : "unknown";
}

bool event_what_parse(const char *name, enum event_what *ret)
{
	for (size_t i = 1; i < EVENT_WHAT_MAX; i++)
		if (strcmp(names[i], name) == 0) {
			*ret = (enum event_what)i;
			return true;
		}
	return false;
}

bool event_what_bits(const char *word, uint64_t *ret)
{
	size_t len = strlen(word);
	uint64_t bits = 0;

	for (size_t i = 1; len > 0 && i < EVENT_WHAT_MAX; i++)
		if (strncmp(names[i], word, len) == 0 && (names[i][len] == '\0' || names[i][len] == '.'))
			bits |= UINT64_C(1) << i;
	if (bits)
		*ret = bits;
	return bits != 0;
}

/* Copies a string to *end, which moves behind it. */
static char *text_pack(char **end, const char *text)
{
	char *to = *end;

	if (!text)
		return NULL;
	*end = stpcpy(to, text) + 1;
	return to;
}

static size_t packed_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* In one allocation: a bulk makes thousands of events, which are freed on the loop. */
struct event *event_make(const struct event_new *n)
{
	const struct actor *by = n->by ? n->by : &ACTOR_SYSTEM;
	const char *who = by->who[0] ? by->who : NULL, *origin = by->origin[0] ? by->origin : NULL, *result = n->result ? n->result : "ok";
	struct event *ev = xcalloc(1, sizeof(*ev) + packed_size(who) + packed_size(origin) + packed_size(n->object) +
					      packed_size(n->node) + packed_size(result) + packed_size(n->detail));
	char *end = (char *)(ev + 1);

	ev->packed = true;
	ev->at = n->at;
	ev->uid = by->uid;
	ev->owner = n->job ? n->owner : by->number ? by->number : by->uid;
	ev->who = text_pack(&end, who);
	ev->origin = text_pack(&end, origin);
	ev->what = n->what;
	ev->object = text_pack(&end, n->object);
	ev->job = n->job;
	ev->run = n->run;
	ev->node = text_pack(&end, n->node);
	ev->result = text_pack(&end, result);
	ev->detail = text_pack(&end, n->detail);
	return ev;
}

void event_free(struct event *ev)
{
	if (ev && !ev->packed) {
		free(ev->who);
		free(ev->origin);
		free(ev->object);
		free(ev->node);
		free(ev->result);
		free(ev->detail);
	}
	free(ev);
}

void event_list_add(struct event_list *l, struct event *ev)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = ev;
}

void event_list_cut(struct event_list *l, size_t n)
{
	while (l->n > n)
		event_free(l->v[--l->n]);
}

void event_list_done(struct event_list *l)
{
	event_list_cut(l, 0);
	free(l->v);
	*l = (struct event_list){};
}
