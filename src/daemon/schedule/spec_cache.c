/* SPDX-License-Identifier: Apache-2.0 */
/* Parsed job definitions, found by their text, so that a recurring job is not parsed for each run. */
/*
 * The key is the whole text and not the number and revision of the job, so an entry cannot be out of date, and jobs with
 * equal definitions share one. Each text has one possible place, so a new entry replaces at most one other.
 */
#include "daemon/schedule/spec_cache.h"
#include "base/text.h"
#include "core/job/job.h"
#include "wire/spec_json.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 256      /* a power of two */
#define TEXT_MAX 4096   /* bytes; longer definitions are parsed each time, so the cache has at most some MiB */

struct entry {
	char *text; /* owned; NULL: the entry is free */
	struct job_spec spec;
};

struct spec_cache {
	struct entry entries[PLACES];
	struct entry uncached; /* the last definition that was longer than TEXT_MAX */
};

static void entry_clear(struct entry *n)
{
	if (n->text)
		job_spec_done(&n->spec);
	free(n->text);
	*n = (struct entry){};
}

struct spec_cache *spec_cache_new(void)
{
	return xcalloc(1, sizeof(struct spec_cache));
}

void spec_cache_free(struct spec_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < PLACES; i++)
		entry_clear(&c->entries[i]);
	entry_clear(&c->uncached);
	free(c);
}

/* FNV-1a. An attacker who finds collisions only makes the daemon parse definitions again. */
static size_t place_of(const char *text, size_t *ret_len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	const char *at = text;

	for (; *at; at++)
		h = (h ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	*ret_len = (size_t)(at - text);
	return (size_t)(h ^ h >> 32) % PLACES;
}

const struct job_spec *spec_cache_get(struct spec_cache *c, const char *text, struct err *e)
{
	size_t len, place = place_of(text, &len);
	struct entry *n = len <= TEXT_MAX ? &c->entries[place] : &c->uncached;
	struct job_spec spec;

	if (n->text && strcmp(n->text, text) == 0)
		return &n->spec;
	job_spec_init(&spec);
	if (!spec_json_from_text(text, &spec, e)) {
		job_spec_done(&spec);
		return NULL;
	}
	entry_clear(n);
	n->text = xstrdup(text);
	n->spec = spec;
	return &n->spec;
}
