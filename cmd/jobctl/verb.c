/* SPDX-License-Identifier: Apache-2.0 */
/* Searches a table of verbs. */
#include "jobctl/verb.h"

#include "core/job/job_fields.h"
#include <assert.h>
#include <string.h>

const struct opt global_opts[] = {
	{"output", 'o', "FORMAT", "table, wide, json, jsonl, csv or name"},
	{"json", 0, NULL, "short for -o json"},
	{"color", 0, "WHEN", "auto, always or never"},
	{"socket", 0, "PATH", "path of the daemon's socket"},
	{"user", 0, NULL, "use only your own daemon"},
	{"system", 0, NULL, "use only the system's daemon"},
	{"instance", 0, "NAME", "use the daemon instance of this name"},
	{"url", 0, "URL", "use a daemon over TCP: https://HOST:PORT"},
	{"token-file", 0, "FILE", "file with the token for --url"},
	{"ca-file", 0, "FILE", "certificate authorities for --url"},
	{"context", 0, "NAME", "use this context of 'jobctl context list'"},
	{"help", 'h', NULL, "show this help"},
	{"version", 'V', NULL, "show versions"},
	{},
};

const struct verb *verb_find(const struct verb *table, const char *name)
{
	for (const struct verb *v = table; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

const char *verb_second_word(const struct verb *v)
{
	const char *gap = strchr(v->name, ' ');

	return gap ? gap + 1 : NULL;
}

const struct verb *verb_in_group(const struct verb *table, const struct verb *v, const char *word)
{
	size_t len = strlen(word);

	for (v = v ? v + 1 : table; v->name; v++)
		if (strncmp(v->name, word, len) == 0 && v->name[len] == ' ')
			return v;
	return NULL;
}

const struct verb *verb_match(const struct verb *table, char *const *words, size_t n,
	size_t *ret_used)
{
	const struct verb *found = NULL;

	for (const struct verb *v = NULL; n > 0 && (v = verb_in_group(table, v, words[0]));) {
		if (n > 1 && strcmp(verb_second_word(v), words[1]) == 0) {
			*ret_used = 2;
			return v;
		}
		/* A second word that is not an option must name a verb of the group. */
		if (v->bare && (n == 1 || words[1][0] == '-'))
			found = v;
	}
	for (const struct verb *v = table; n > 0 && v->name && !found; v++)
		if (!verb_second_word(v) && strcmp(v->name, words[0]) == 0)
			found = v;
	*ret_used = found != NULL;
	return found;
}

static size_t append(struct opt *to, size_t n, const struct opt *from)
{
	for (; from && from->name; from++) {
		assert(n < OPTS_MAX);
		to[n++] = *from;
	}
	return n;
}

bool verb_has_opt(const struct verb *v, const char *name)
{
	for (const struct opt *o = v ? v->opts : NULL; o && o->name; o++)
		if (strcmp(o->name, name) == 0)
			return true;
	return false;
}

size_t verb_opts(const struct verb *v, struct opt ret[OPTS_MAX])
{
	size_t n = 0;

	if (v)
		n = append(ret, n, v->opts);
	for (size_t i = 0; v && v->job_fields && i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];

		if (!f->flag)
			continue;
		assert(n < OPTS_MAX);
		ret[n++] = (struct opt){f->flag, f->short_flag, f->bare ? NULL : f->arg, f->help};
	}
	for (const struct opt *o = global_opts; o->name; o++)
		if (!verb_has_opt(v, o->name)) {
			assert(n < OPTS_MAX);
			ret[n++] = *o;
		}
	return n;
}
