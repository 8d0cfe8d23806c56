/* SPDX-License-Identifier: Apache-2.0 */
/* Matches pauses against jobs and describes them in English. */
#include "core/job/pause.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/owner.h"
#include <inttypes.h>
#include <string.h>

static const char *const scope_names[PAUSE_SCOPE_MAX] = {
	[PAUSE_JOB] = "job",
	[PAUSE_ALL] = "all",
	[PAUSE_QUEUE] = "queue",
	[PAUSE_OWNER] = "owner",
	[PAUSE_TAG] = "tag",
	[PAUSE_FREEZE] = "freeze",
};

const char *pause_scope_name(enum pause_scope s)
{
	return s < PAUSE_SCOPE_MAX ? scope_names[s] : "unknown";
}

bool pause_scope_parse(const char *name, enum pause_scope *ret)
{
	for (int s = 0; s < PAUSE_SCOPE_MAX; s++)
		if (strcmp(name, scope_names[s]) == 0) {
			*ret = (enum pause_scope)s;
			return true;
		}
	return false;
}

void pause_order_done(struct pause_order *p)
{
	free(p->key);
	free(p->by_name);
	free(p->reason);
	free(p->spared);
	*p = (struct pause_order){};
}

void pause_list_done(struct pause_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		pause_order_done(&l->v[i]);
	free(l->v);
	*l = (struct pause_list){};
}

struct pause_order *pause_list_add(struct pause_list *l)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n] = (struct pause_order){};
	return &l->v[l->n++];
}

/*
 * A pause by the daemon (-1) follows from the job's own exit rules. Jobs added with --paused have
 * the owner's number in by_uid.
 */
bool pause_is_imposed(const struct pause_order *p, int64_t owner)
{
	return p->by_uid >= 0 && p->by_uid != owner && p->by_uid != (int64_t)owner_uid(owner);
}

/* 'tag' is KEY=VALUE, or KEY for any value. */
static bool has_tag(const struct pause_target *t, const char *tag)
{
	size_t key = strcspn(tag, "=");

	for (size_t i = 0; t->tags && i < t->tags->n; i++)
		if (tag[key] ? strcmp(t->tags->v[i], tag) == 0
			     : strncmp(t->tags->v[i], tag, key) == 0 && t->tags->v[i][key] == '=')
			return true;
	return false;
}

bool pause_begun(const struct pause_order *p, usec_t now)
{
	return !p->later || p->at <= now;
}

bool pause_covers(const struct pause_order *p, const struct pause_target *t, usec_t now)
{
	if (!pause_begun(p, now) || (p->until && p->until <= now) || (p->uid >= 0 && p->uid != (int64_t)t->uid))
		return false;
	switch (p->scope) {
	case PAUSE_ALL:
	case PAUSE_OWNER: /* the owner was compared above */
		return true;
	case PAUSE_QUEUE:
		return text_equal(p->key, t->queue);
	case PAUSE_TAG:
		return has_tag(t, p->key);
	case PAUSE_FREEZE:
		return !p->spared || !*p->spared || !has_tag(t, p->spared);
	default:
		return false;
	}
}

const struct pause_order *pause_find(const struct pause_list *l, const struct pause_target *t, usec_t now)
{
	const struct pause_order *found = NULL;

	for (size_t i = 0; i < l->n; i++)
		if (pause_covers(&l->v[i], t, now) && (!found || l->v[i].scope > found->scope))
			found = &l->v[i];
	return found;
}

bool pause_lasts_longer(const struct pause_order *a, const struct pause_order *b)
{
	return b->until && (!a->until || a->until > b->until);
}

const struct pause_order *pause_longest(const struct pause_list *l, const struct pause_target *t, usec_t now)
{
	const struct pause_order *found = NULL;

	for (size_t i = 0; i < l->n; i++)
		if (pause_covers(&l->v[i], t, now) &&
			(!found || pause_lasts_longer(&l->v[i], found) ||
				(l->v[i].until == found->until && l->v[i].scope > found->scope)))
			found = &l->v[i];
	return found;
}

void pause_words(const struct pause_order *p, struct buf *out)
{
	char since[RFC3339_MAX], until[RFC3339_MAX];

	buf_printf(out, "%s by %s", p->scope == PAUSE_FREEZE ? "frozen" : "paused", p->by_name ? p->by_name : "an unknown user");
	if (p->at)
		buf_printf(out, " %s %s", p->later ? "from" : "since", rfc3339_format(p->at - p->at % USEC_SEC, since));
	if (p->until)
		buf_printf(out, " until %s", rfc3339_format(p->until, until));
	if (p->reason && *p->reason)
		buf_printf(out, ": %s", p->reason);
}

void pause_remedy(const struct pause_order *p, const char *job, struct buf *out)
{
	switch (p->scope) {
	case PAUSE_JOB:
		buf_printf(out, "jobctl resume %s", job);
		break;
	case PAUSE_FREEZE:
		buf_str(out, "jobctl thaw");
		break;
	case PAUSE_ALL:
		buf_str(out, "jobctl resume --all");
		break;
	default:
		buf_printf(out, "jobctl resume --%s %s", pause_scope_name(p->scope), p->key);
	}
	if (p->uid >= 0 && p->scope != PAUSE_JOB && p->scope != PAUSE_OWNER)
		buf_printf(out, " --owner %" PRId64, p->uid);
}
