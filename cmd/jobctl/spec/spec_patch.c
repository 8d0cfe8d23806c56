/* SPDX-License-Identifier: Apache-2.0 */
/* Builds JSON merge patches for job definitions. */
#include "jobctl/spec/spec_patch.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_diff.h"
#include "core/job/job_fields.h"
#include "jobctl/spec/spec_args.h"
#include "jobctl/spec/when_args.h"
#include "jobctl/suggest.h"
#include "wire/spec_json.h"
#include <string.h>

static void *patch_field_address(const struct job_spec *s, const struct job_field *f)
{
	return (char *)s + f->offset;
}

/*
 * Copies the member, or its base64 form, from 'spec'. An absent member becomes null, which resets
 * it.
 */
static void put_member(json_t *patch, const struct job_field *f, const json_t *spec)
{
	AUTO_TEXT coded = xprintf("%s_b64", f->name);
	json_t *v = json_object_get(spec, f->name), *bytes = json_object_get(spec, coded);

	if (v || !bytes)
		json_object_set(patch, f->name, v ? v : json_null());
	else
		json_object_set(patch, coded, bytes);
}

static const char *pair_with_name(const struct strv *map, const char *pair)
{
	size_t len = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < map->n; i++)
		if (strncmp(map->v[i], pair, len) == 0)
			return map->v[i];
	return NULL;
}

static void reset_member(json_t *patch, const char *field, const char *name)
{
	json_t *map = json_object_get(patch, field);

	if (!json_is_object(map)) {
		map = json_object();
		json_object_set_new(patch, field, map);
	}
	json_object_set_new(map, name, json_null());
}

static void put_new_pairs(json_t *patch, const struct job_field *f, const struct strv *pairs)
{
	AUTO_DONE(job_spec) only;
	json_auto_t *spec = NULL;

	job_spec_init(&only);
	if (pairs->n == 0)
		return;
	strv_copy(patch_field_address(&only, f), pairs);
	spec = spec_json_write(&only);
	put_member(patch, f, spec);
}

static void put_map_changes(json_t *patch, const struct job_field *f, const struct strv *before,
	const struct strv *after)
{
	AUTO_DONE(strv) news = {};

	for (size_t i = 0; i < after->n; i++)
		if (!text_equal(pair_with_name(before, after->v[i]), after->v[i]))
			strv_add(&news, after->v[i]);
	put_new_pairs(patch, f, &news);
	for (size_t i = 0; i < before->n; i++) {
		AUTO_TEXT name = xstrndup(before->v[i], strcspn(before->v[i], "="));

		if (!pair_with_name(after, before->v[i]))
			reset_member(patch, f->name, name);
	}
}

json_t *spec_patch(const struct job_spec *before, const struct job_spec *after)
{
	json_auto_t *spec = spec_json_write(after);
	json_t *patch = json_object();

	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];

		if (job_diff_field_equal(f, before, after))
			continue;
		if (f->type == FIELD_MAP)
			put_map_changes(patch, f, patch_field_address(before, f),
				patch_field_address(after, f));
		else
			put_member(patch, f, spec);
	}
	return patch;
}

/* ---- operands of 'jobctl set' ---- */

struct patch_input {
	struct job_spec s;     /* the new values */
	bool given[128];       /* per field: has a new value */
	json_t *patch;         /* the fields and members that are reset */
};

static const struct job_field *find_patch_field(const char *key)
{
	for (size_t i = 0; i < job_fields_count; i++)
		if (strcmp(job_fields[i].name, key) == 0 ||
			(job_fields[i].flag && strcmp(job_fields[i].flag, key) == 0))
			return &job_fields[i];
	return NULL;
}

static bool patch_pair(struct patch_input *w, const char *key, const char *name, const char *value,
	struct err *e)
{
	const struct job_field *f = find_patch_field(key);
	AUTO_TEXT pair = xprintf("%s=%s", name, value);

	if (!f || f->type != FIELD_MAP)
		return err_set(e, ERR_INVALID,
			"unknown key '%s.%s'; fields with members are env.NAME, tag.KEY and param.NAME",
			key, name);
	if (!*value) {
		reset_member(w->patch, f->name, name);
		return true;
	}
	w->given[f - job_fields] = true;
	return spec_args_set_field(&w->s, f, pair, e);
}

static bool patch_field(struct patch_input *w, const struct job_field *f, const char *value,
	struct err *e)
{
	if (!*value) {
		if (strcmp(f->name, "schedule") == 0)
			return err_set(e, ERR_INVALID,
				"a job needs a schedule; 'schedule=manual' has no slots");
		json_object_set_new(w->patch, f->name, json_null());
		return true;
	}
	if (f->type == FIELD_MAP)
		return err_set(e, ERR_INVALID, "write %s.NAME=VALUE", f->flag);
	if (strcmp(f->name, "command") == 0)
		return err_set(e, ERR_INVALID,
			"write the new command after '--': jobctl set JOB -- COMMAND");
	w->given[f - job_fields] = true;
	return spec_args_set_field(&w->s, f, value, e);
}

/* Reports an unknown key and suggests a similar one. */
static bool fail_unknown_key(const char *key, struct err *e)
{
	AUTO_DONE(suggest) s = {.typed = key};

	for (size_t i = 0; i < job_fields_count; i++)
		suggest_offer(&s, job_fields[i].flag ? job_fields[i].flag : job_fields[i].name);
	for (size_t i = 0; when_args_flag(i); i++)
		suggest_offer(&s, when_args_flag(i));
	if (s.best)
		return err_set(e, ERR_INVALID, "unknown key '%s'; did you mean '%s'?", key, s.best);
	return err_set(e, ERR_INVALID, "unknown key '%s'; the keys are the options of 'jobctl add'",
		key);
}

static bool patch_word(struct patch_input *w, const char *word, struct err *e)
{
	const char *eq = strchr(word, '=');
	AUTO_TEXT key = xstrndup(word, eq ? (size_t)(eq - word) : 0);
	AUTO_TEXT when = NULL;
	const struct job_field *f = find_patch_field(key);
	char *dot = strchr(key, '.');

	if (!eq || word[0] == '-')
		return err_set(e, ERR_INVALID, "'%s' is not KEY=VALUE%s", word,
			word[0] == '-' ? "; options stand before the job, a command after '--'"
				       : "");
	if (f)
		return patch_field(w, f, eq + 1, e);
	if (dot) {
		*dot = 0;
		return patch_pair(w, key, dot + 1, eq + 1, e);
	}
	if (!when_args_parse(key, eq + 1, &when, e))
		return false;
	if (!when)
		return fail_unknown_key(key, e);
	strv_take(&w->s.schedule, STEAL(when));
	w->given[job_field_find("schedule") - job_fields] = true;
	return true;
}

static void patch_command(struct patch_input *w, char *const *words, size_t n)
{
	spec_args_set_command(&w->s, words, n);
	w->given[job_field_find(w->s.script ? "script" : "command") - job_fields] = true;
}

static void put_given(struct patch_input *w)
{
	json_auto_t *spec = spec_json_write(&w->s);

	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		json_t *gone = json_object_get(w->patch, f->name);

		if (!w->given[i])
			continue;
		if (f->type == FIELD_MAP && json_is_object(gone) && json_object_get(spec, f->name))
			json_object_update(gone, json_object_get(spec, f->name));
		else
			put_member(w->patch, f, spec);
	}
}

static bool patch_words(struct patch_input *w, char *const *words, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i], "--") != 0) {
			if (!patch_word(w, words[i], e))
				return false;
			continue;
		}
		if (i + 1 == n)
			return err_set(e, ERR_INVALID, "there is no command after '--'");
		patch_command(w, words + i + 1, n - i - 1);
		break;
	}
	put_given(w);
	return true;
}

bool spec_patch_from_words(char *const *words, size_t n, json_t **ret, struct err *e)
{
	struct patch_input w = {.patch = json_object()};
	bool ok;

	job_spec_init(&w.s);
	ok = patch_words(&w, words, n, e);
	job_spec_done(&w.s);
	if (ok)
		*ret = w.patch;
	else
		json_decref(w.patch);
	return ok;
}
