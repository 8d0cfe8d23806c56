/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a JSON merge patch to a job definition. */
#include "base/auto.h"
#include "base/err.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "wire/spec_json.h"
#include <string.h>

static void *field_at(struct job_spec *s, const struct job_field *f)
{
	return (char *)s + f->offset;
}

/* Exchanges the value of one field between two definitions. */
static void swap_field(const struct job_field *f, struct job_spec *a, struct job_spec *b)
{
	static const size_t sizes[FIELD_TYPE_MAX] = {[FIELD_TEXT] = sizeof(char *),
		[FIELD_LIST] = sizeof(struct strv),
		[FIELD_MAP] = sizeof(struct strv),
		[FIELD_BLOB] = sizeof(struct blob)};
	size_t size = sizes[f->type] ? sizes[f->type] : sizeof(int64_t);
	char keep[sizeof(struct strv) + sizeof(struct blob)];

	memcpy(keep, field_at(a, f), size);
	memcpy(field_at(a, f), field_at(b, f), size);
	memcpy(field_at(b, f), keep, size);
}

static void drop_pair(struct strv *map, const char *name)
{
	size_t len = strlen(name), to = 0;

	for (size_t i = 0; i < map->n; i++) {
		if (strncmp(map->v[i], name, len) == 0 && map->v[i][len] == '=')
			free(map->v[i]);
		else
			map->v[to++] = map->v[i];
	}
	map->n = to;
	if (map->v)
		map->v[to] = NULL;
}

/* Replaces pairs of the same name. */
static void merge_pairs(struct strv *map, const struct strv *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		AUTO_TEXT name = xstrndup(pairs->v[i], strcspn(pairs->v[i], "="));

		drop_pair(map, name);
		strv_add(map, pairs->v[i]);
	}
}

static bool merge_map(const char *name, const struct job_field *f, const json_t *value,
	struct job_spec *s, struct err *e)
{
	AUTO_DONE(job_spec) given;
	json_auto_t *set = json_object(), *alone = NULL;
	struct strv *map = field_at(s, f);
	const char *key;
	json_t *v;

	job_spec_init(&given);
	json_object_foreach((json_t *)value, key, v) {
		if (json_is_null(v))
			drop_pair(map, key);
		else
			json_object_set(set, key, v);
	}
	alone = json_pack("{s:O}", name, set);
	if (!spec_json_read(alone, &given, NULL, e))
		return false;
	merge_pairs(map, field_at(&given, f));
	if ((int64_t)map->n > f->max)
		return err_field(e, f->name, "'%s' is too long: at most %lld members", f->name,
			(long long)f->max);
	return true;
}

static const struct job_field *field_of(const char *name)
{
	static const char coded[] = "_b64";
	size_t len = strlen(name);
	AUTO_TEXT plain = NULL;

	if (len > strlen(coded) && strcmp(name + len - strlen(coded), coded) == 0)
		plain = xstrndup(name, len - strlen(coded));
	return job_field_find(plain ? plain : name);
}

static bool merge_member(const char *name, const json_t *value, struct job_spec *s, struct err *e)
{
	const struct job_field *f = field_of(name);
	AUTO_DONE(job_spec) given;
	json_auto_t *alone = NULL;

	job_spec_init(&given);
	if (f && f->type == FIELD_MAP && json_is_object(value))
		return merge_map(name, f, value, s, e);
	if (!f || !json_is_null(value)) {
		alone = json_pack("{s:O}", name, value);
		if (!spec_json_read(alone, &given, NULL, e))
			return false;
	}
	swap_field(f, s, &given);
	return true;
}

bool spec_json_merge(const json_t *patch, struct job_spec *s, struct err *e)
{
	const char *name;
	json_t *v;

	if (!json_is_object(patch))
		return err_set(e, ERR_INVALID, "a change must be a JSON object");
	json_object_foreach((json_t *)patch, name, v) {
		const struct job_field *f = field_of(name), *other = NULL;

		if (!merge_member(name, v, s, e))
			return false;
		/* a job has either a command or a script, so one replaces the other; see also core/job/call.h */
		if (!json_is_null(v) && strcmp(f->name, "command") == 0)
			other = job_field_find("script");
		else if (!json_is_null(v) && strcmp(f->name, "script") == 0)
			other = job_field_find("command");
		if (other && !json_object_get(patch, other->name) &&
			!merge_member(other->name, json_null(), s, e))
			return false;
	}
	return true;
}
