/* SPDX-License-Identifier: Apache-2.0 */
/* Suggests known words that are close to a mistyped one. */
#include "jobctl/suggest.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/edit_distance.h"
#include "base/text.h"
#include "jobctl/ctl.h"
#include "jobctl/verb.h"
#include <string.h>

void suggest_done(struct suggest *s)
{
	free(s->best);
	s->best = NULL;
}

void suggest_offer(struct suggest *s, const char *word)
{
	size_t typed = strlen(s->typed);
	size_t max = typed >= 6 ? typed / 3 : 1; /* one letter, or a third of them, may be a typo */
	size_t d = edit_distance(s->typed, word, max);

	if (d > max || d >= typed || (s->best && d >= s->distance))
		return;
	free(s->best);
	s->best = xstrdup(word);
	s->distance = d;
}

/* "'db' needs a second word: prune, backup, check or restore" */
static int suggest_second(const struct verb *table, const char *word)
{
	AUTO_DONE(buf) line = {};
	const struct verb *v = verb_in_group(table, NULL, word), *next;

	for (; v; v = next) {
		next = verb_in_group(table, v, word);
		buf_printf(&line, "%s%s",
			line.len == 0 ? ""
			: next	      ? ", "
				      : " or ",
			verb_second_word(v));
	}
	ctl_say("jobctl: '%s' needs a second word: %s; see 'jobctl help %s'", word, line.data, word);
	return EXIT_USAGE;
}

/*
 * Verbs of crontab(1), at(1), systemctl(1), pueue, docker and kubectl, with the jobctl command for
 * each.
 */
static const struct {
	const char *word, *here;
} other_tools[] = {
	{"atq", "jobctl list"},
	{"atrm", "jobctl rm JOB"},
	{"clean", "jobctl db prune"},
	{"delete", "jobctl rm JOB"},
	{"describe", "jobctl show JOB"},
	{"disable", "jobctl pause JOB"},
	{"drain", "jobctl node drain NODE"},
	{"enable", "jobctl resume JOB"},
	{"follow", "jobctl log -f JOB"},
	{"get", "jobctl show JOB"},
	{"info", "jobctl show JOB"},
	{"jobs", "jobctl list"},
	{"kill", "jobctl cancel RUN"},
	{"ls", "jobctl list"},
	{"ps", "jobctl runs --state running"},
	{"queues", "jobctl queue list"},
	{"remove", "jobctl rm JOB"},
	{"resign", "jobctl node resign NODE"},
	{"restart", "jobctl run JOB"},
	{"retry", "jobctl dead retry RUN', or 'jobctl run JOB"},
	{"start", "jobctl run JOB"},
	{"stop", "jobctl cancel RUN', or 'jobctl pause JOB"},
	{"tail", "jobctl log -f JOB"},
	{"trigger", "jobctl run JOB"},
	{"undrain", "jobctl node undrain NODE"},
	{"unpause", "jobctl resume JOB"},
	{"update", "jobctl set JOB KEY=VALUE"},
};

int suggest_verb(const struct verb *table, char *const *words, size_t n)
{
	bool group = verb_in_group(table, NULL, words[0]) != NULL;
	bool two = group && n > 1 && words[1][0] != '-';
	AUTO_TEXT typed = two ? xprintf("%s %s", words[0], words[1]) : xstrdup(words[0]);
	AUTO_DONE(suggest) s = {.typed = two ? words[1] : typed};

	if (group && !two)
		return suggest_second(table, words[0]);
	for (const struct verb *v = table; v->name && !two; v++) {
		AUTO_TEXT first = xprintf("%.*s", (int)strcspn(v->name, " "), v->name);

		if (!v->hidden)
			suggest_offer(&s, first);
	}
	for (const struct verb *v = NULL; two && (v = verb_in_group(table, v, words[0]));)
		suggest_offer(&s, verb_second_word(v));
	for (size_t i = 0; !two && i < ELEMENTS(other_tools); i++)
		if (strcmp(typed, other_tools[i].word) == 0) {
			ctl_say("jobctl: no verb '%s'; use '%s'", typed, other_tools[i].here);
			return EXIT_USAGE;
		}
	if (s.best)
		ctl_say("jobctl: no verb '%s'; did you mean '%s%s%s'?", typed, two ? words[0] : "",
			two ? " " : "", s.best);
	else
		ctl_say("jobctl: no verb '%s'; 'jobctl help%s%s' lists them", typed, two ? " " : "",
			two ? words[0] : "");
	return EXIT_USAGE;
}
