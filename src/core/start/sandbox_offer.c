/* SPDX-License-Identifier: Apache-2.0 */
/* Prints and parses the list of available sandbox profiles. */
#include "core/start/sandbox_offer.h"
#include "base/err.h"
#include "core/job/sandbox_profile.h"
#include <string.h>

void sandbox_offer_print(const struct sandbox *s, bool available, const char *missing, struct buf *out)
{
	AUTO_DONE(buf) words = {};
	char *next;

	buf_printf(out, "profile %s %s\n", s->name, available ? "yes" : "no");
	if (missing)
		buf_printf(out, "missing %s\n", missing);
	sandbox_profile_words(s, &words);
	next = words.data;
	for (char *line; (line = strsep(&next, "\n")) && *line;)
		buf_printf(out, "applies %s\n", line);
}

static bool add_profile(struct sandbox_offers *o, const char *text)
{
	const char *answer = strchr(text, ' ');
	AUTO_TEXT name = answer ? xstrndup(text, (size_t)(answer - text)) : NULL;

	if (!name || !sandbox_profile_name_check(name, NULL) || (strcmp(answer, " yes") != 0 && strcmp(answer, " no") != 0))
		return false;
	o->v = xrealloc(o->v, (o->n + 1) * sizeof(*o->v));
	o->v[o->n++] = (struct sandbox_offer){.name = STEAL(name), .available = answer[1] == 'y'};
	return true;
}

static bool offer_line_parse(struct sandbox_offers *o, const char *line)
{
	const char *space = strchr(line, ' ');
	struct sandbox_offer *last = o->n ? &o->v[o->n - 1] : NULL;

	if (!space || !space[1])
		return false;
	if (text_starts(line, "profile "))
		return add_profile(o, space + 1);
	if (last && text_starts(line, "missing ") && !last->missing) {
		last->missing = xstrdup(space + 1);
		return true;
	}
	if (last && text_starts(line, "applies ")) {
		strv_add(&last->applies, space + 1);
		return true;
	}
	return false;
}

bool sandbox_offers_parse(const char *text, size_t len, struct sandbox_offers **ret, struct err *e)
{
	AUTO(sandbox_offers) *o = xcalloc(1, sizeof(*o));
	AUTO_TEXT copy = NULL;
	char *next;

	atomic_init(&o->refs, 1);
	if (len > SANDBOX_OFFERS_MAX || memchr(text, '\0', len) || !text_utf8_valid(text, len))
		return err_set(e, ERR_INVALID, "a list of sandbox profiles that is not a text");
	next = copy = xstrndup(text, len);
	for (char *line; (line = strsep(&next, "\n")) && next;)
		if (!offer_line_parse(o, line))
			return err_set(e, ERR_INVALID, "a list of sandbox profiles with a line '%.40s'", line);
	*ret = STEAL(o);
	return true;
}

struct sandbox_offers *sandbox_offers_ref(struct sandbox_offers *o)
{
	if (o)
		atomic_fetch_add(&o->refs, 1);
	return o;
}

void sandbox_offers_free(struct sandbox_offers *o)
{
	if (!o || atomic_fetch_sub(&o->refs, 1) > 1)
		return;
	for (size_t i = 0; i < o->n; i++) {
		free(o->v[i].name);
		free(o->v[i].missing);
		strv_done(&o->v[i].applies);
	}
	free(o->v);
	free(o);
}

static bool refuse_unknown(const struct sandbox_offers *o, const char *name, struct err *e)
{
	AUTO_DONE(buf) names = {};

	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].available)
			buf_printf(&names, "%s%s", names.len ? ", " : "", o->v[i].name);
	return err_field(e, "sandbox", "there is no sandbox profile '%.64s' here; there are: %.300s", name,
		names.len ? names.data : "none");
}

bool sandbox_offers_check(const struct sandbox_offers *o, const char *name, struct err *e)
{
	const struct sandbox_offer *found = NULL;

	if (!o)
		return true;
	if (!name)
		name = SANDBOX_PRESET;
	for (size_t i = 0; i < o->n && !found; i++)
		if (strcmp(o->v[i].name, name) == 0)
			found = &o->v[i];
	if (!found)
		return refuse_unknown(o, name, e);
	if (found->available)
		return true;
	if (found->missing)
		return err_field(e, "sandbox", "sandbox profile '%.64s' cannot be had here: %.250s; choose another with --sandbox, or "
					       "let root set 'sandbox-missing = report' in spawner.conf", name, found->missing);
	return err_field(e, "sandbox", "sandbox profile '%.64s' is not for jobs of this site; choose another with --sandbox", name);
}
