/* SPDX-License-Identifier: Apache-2.0 */
/* The disk space of the artifact cache: eviction, shares of owners, grants to children. */
#include "base/text.h"
#include "net/artifact/artifact_cache_private.h"
#include "net/unpack/quota.h"
#include "net/request.h"
#include <string.h>

#define GRANT_STEP (INT64_C(4) << 20)

static int64_t tasks_bytes(const struct artifact_cache *c)
{
	int64_t sum = 0;

	for (const struct artifact_task *t = c->tasks; t; t = t->next)
		sum += t->stage == TASK_WAITING ? 0 : t->file_bytes + t->granted;
	return sum;
}

int64_t artifact_budget_evict(struct artifact_cache *c, int64_t more)
{
	struct artifact_entry *v = NULL;
	size_t n = artifact_entries_list(c, &v);
	int64_t room = c->budget - tasks_bytes(c);

	for (size_t i = 0; i < n; i++)
		room -= v[i].bytes;
	for (size_t i = 0; i < n; i++) {
		if (room >= more || v[i].in_use || !c->synced)
			continue;
		room += v[i].bytes;
		artifact_entry_remove(c, v[i].name);
	}
	artifact_entries_free(v, n);
	return room;
}

static bool entry_in_use_by(const struct artifact_cache *c, const char *key, int64_t uid)
{
	for (const struct request *r = *c->o.requests; r; r = r->next)
		if (r->uid == uid && strcmp(r->key, key) == 0)
			return true;
	return false;
}

/*
 * The bytes that runs and tasks of one owner use. An artifact that several owners use counts for
 * each of them.
 */
static int64_t owner_bytes_used(const struct artifact_cache *c, int64_t uid)
{
	struct artifact_entry *v = NULL;
	size_t n = artifact_entries_list(c, &v);
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += entry_in_use_by(c, v[i].name, uid) ? v[i].bytes : 0;
	for (const struct artifact_task *t = c->tasks; t; t = t->next)
		sum += t->uid == uid && t->stage != TASK_WAITING ? t->file_bytes + t->granted : 0;
	artifact_entries_free(v, n);
	return sum;
}

/*
 * One owner may use half of the budget, or the space for one artifact of the largest size if that
 * is more.
 */
static bool owner_over_share(const struct artifact_task *t, int64_t missing)
{
	const struct artifact_cache *c = t->cache;
	/* one: the archive and its tree exist at the same time */
	int64_t one = 2 * t->limit, half = c->budget / 2;

	return !c->o.private_copies &&
		owner_bytes_used(c, t->uid) + missing > (one > half ? one : half);
}

int64_t artifact_budget_grant(struct artifact_task *t, int64_t needed)
{
	struct artifact_cache *c = t->cache;
	int64_t missing = needed - t->granted, room;
	struct artifact_entry archive = {};

	if (missing <= 0)
		return t->granted;
	if (owner_over_share(t, missing))
		return QUOTA_OWNER;
	room = artifact_budget_evict(c, missing + GRANT_STEP);
	if (room >= missing) {
		t->granted =
			room >= missing + GRANT_STEP && !owner_over_share(t, missing + GRANT_STEP)
			? needed + GRANT_STEP
			: needed;
		return t->granted;
	}
	if (t->copy_for)
		artifact_entry_read(c, t->key, &archive);
	return t->file_bytes + archive.bytes + needed > c->budget ? QUOTA_TOO_LARGE : QUOTA_FULL;
}
