/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the forms of schedule texts and compiles them. */
#include "base/err.h"
#include "base/text.h"
#include "core/time/civil.h"
#include "core/time/phrase.h"
#include "core/time/scan.h"
#include "core/time/schedule.h"
#include "core/time/schedule_form.h"
#include "core/time/zone.h"

#include <string.h>

#define REPEAT_MAX 999999999

/* The arguments of a parser of one form; it fills in 'out'. */
struct reader {
	struct scan *s;
	const struct schedule_context *c;
	struct schedule *out;
};

static bool at_end(struct scan *s)
{
	scan_blanks(s);
	return scan_done(s) || scan_fail(s, s->pos, "nothing may follow here");
}

/* @N: seconds since the epoch */
static bool read_epoch(struct reader *r)
{
	struct scan *s = r->s;
	int64_t n = 0;
	size_t from = s->pos;

	scan_take(s, '@');
	for (; scan_peek(s) >= '0' && scan_peek(s) <= '9'; s->pos++)
		if (n <= TIME_LAST)
			n = n * 10 + (scan_peek(s) - '0');
	if (!at_end(s))
		return false;
	if (n > TIME_LAST)
		return scan_fail(s, from, "times go from 1970 to the end of 2199");
	if (n < r->out->anchor && !r->c->accepted)
		return scan_fail(s, from, "time is in the past");
	r->out->form = FORM_ONCE;
	r->out->once = n;
	return true;
}

static bool read_moment(struct reader *r)
{
	const struct phrase_context c = {
		.zone = r->out->zone,
		.now = r->out->anchor,
		.past_ok = r->c->accepted,
	};
	char word[SCAN_WORD_MAX];
	struct scan look = *r->s;

	r->out->form = FORM_ONCE;
	if (scan_word(&look, word) && !strcmp(word, "now") && scan_done(&look))
		r->out->form = FORM_NOW;
	return phrase_scan(r->s, &c, &r->out->once);
}

/* "since INSTANT", which the canonical text has; else the series counts from the submission. */
static bool read_since(struct reader *r)
{
	char word[SCAN_WORD_MAX];
	struct scan *s = r->s;
	size_t at;

	scan_blanks(s);
	at = s->pos;
	if (scan_done(s))
		return true;
	if (!scan_word(s, word) || strcmp(word, "since") || !scan_blanks(s))
		return scan_fail(s, at, "only 'since' and a time with its offset may follow here");
	return phrase_scan_rfc3339(s, &r->out->series.anchor) && at_end(s);
}

static void start_series(struct reader *r, int64_t anchor, int64_t first, int64_t last)
{
	r->out->form = FORM_SERIES;
	r->out->series.anchor = anchor;
	r->out->series.first = first;
	r->out->series.last = last;
}

static bool read_every(struct reader *r)
{
	struct scan *s = r->s;
	char word[SCAN_WORD_MAX];

	scan_take(s, '@');
	scan_word(s, word);
	if (!scan_blanks(s))
		return scan_fail(s, s->pos, "a number and a unit belong here, as in 'every 15m'");
	start_series(r, r->out->anchor, 1, INT64_MAX);
	return interval_scan_words(s, &r->out->series.step) && read_since(r);
}

static bool read_iso(struct reader *r)
{
	start_series(r, r->out->anchor, 1, INT64_MAX);
	return interval_scan_iso(r->s, &r->out->series.step) && read_since(r);
}

/* R5/2026-01-31T09:00:00Z/P1M, R/2026-…/P1M, R5/P1M */
static bool read_repetition(struct reader *r)
{
	struct scan *s = r->s;
	int64_t n = INT64_MAX, start;
	size_t at;

	scan_take(s, 'R');
	at = s->pos;
	if (scan_peek(s) != '/' && (!scan_number(s, &n, NULL) || n < 1))
		return scan_fail(s, at, "how often, from 1 to %d, or '/' belongs here", REPEAT_MAX);
	if (!scan_take(s, '/'))
		return scan_fail(s, s->pos, "'/' belongs here, as in R5/2026-01-31T09:00:00Z/P1M");
	if (scan_peek(s) == 'P' || scan_peek(s) == 'p') {
		if (n == INT64_MAX)
			return scan_fail(s, at, "without a start, write the duration alone or how often");
		start_series(r, r->out->anchor, 1, n);
		return interval_scan_iso(s, &r->out->series.step) && read_since(r);
	}
	if (!phrase_scan_rfc3339(s, &start))
		return false;
	if (!scan_take(s, '/'))
		return scan_fail(s, s->pos, "'/' and a duration belong here, as in R5/2026-01-31T09:00:00Z/P1M");
	start_series(r, start, 0, n == INT64_MAX ? n : n - 1);
	return interval_scan_iso(s, &r->out->series.step) && at_end(s);
}

static bool read_after_finish(struct reader *r)
{
	struct scan *s = r->s;

	s->pos += strlen("after-finish");
	if (!scan_blanks(s))
		return scan_fail(s, s->pos, "a duration belongs here, as in 'after-finish 10m'");
	start_series(r, r->out->anchor, 1, 1);
	r->out->form = FORM_AFTER_FINISH;
	return (scan_peek(s) == 'P' || scan_peek(s) == 'p' ?
		       interval_scan_iso(s, &r->out->series.step) :
		       interval_scan_words(s, &r->out->series.step)) &&
	       read_since(r);
}

static bool read_manual(struct reader *r)
{
	r->s->pos += strlen("manual");
	r->out->form = FORM_MANUAL;
	return at_end(r->s);
}

static bool read_cron(struct reader *r)
{
	r->out->form = FORM_CRON;
	r->out->policy = (struct cron_policy){ .zone = r->out->zone, .gap = r->c->gap, .fold = r->c->fold };
	return cron_scan(r->s, r->c->id ? r->c->id : "", &r->out->cron);
}

struct nickname {
	const char *word;
	const char *means; /* NULL: once per boot */
};
static const struct nickname nicknames[] = {
	{ "yearly", "0 0 1 1 *" },
	{ "annually", "0 0 1 1 *" },
	{ "monthly", "0 0 1 * *" },
	{ "weekly", "0 0 * * 0" },
	{ "daily", "0 0 * * *" },
	{ "midnight", "0 0 * * *" },
	{ "hourly", "0 * * * *" },
	{ "reboot", NULL },
};

static bool read_nickname(struct reader *r)
{
	struct scan *s = r->s;
	size_t at = s->pos;
	char word[SCAN_WORD_MAX];

	scan_take(s, '@');
	scan_word(s, word);
	for (size_t i = 0; i < ELEMENTS(nicknames); i++) {
		struct scan means = { .text = nicknames[i].means, .e = s->e };

		if (strcmp(word, nicknames[i].word))
			continue;
		if (!at_end(s))
			return false;
		if (!means.text) {
			r->out->form = FORM_BOOT;
			return true;
		}
		means.end = strlen(means.text);
		r->s = &means;
		return read_cron(r);
	}
	return scan_fail(s, at, "unknown nickname; there are @yearly @annually @monthly @weekly @daily "
		"@midnight @hourly @reboot, @every 15m and @EPOCH");
}

/*
 * The words a text may begin with; a blank, the end or a digit after them is looked for by the
 * reader.
 */
struct leading {
	const char *word;
	bool (*read)(struct reader *r);
};
static const struct leading leading[] = {
	{ "@every", read_every },
	{ "every", read_every },
	{ "after-finish", read_after_finish },
	{ "manual", read_manual },
};

/* The word, and no further letter. */
static bool starts_with(const struct scan *s, const char *word)
{
	struct scan look = *s;
	char more[SCAN_WORD_MAX];

	for (; *word; word++)
		if (!scan_take(&look, *word))
			return false;
	return scan_word(&look, more) == 0;
}

static bool (*choose(const struct scan *s))(struct reader *r)
{
	char first = scan_peek(s), second = s->pos + 1 < s->end ? s->text[s->pos + 1] : '\0';

	if (first == '@' && second >= '0' && second <= '9')
		return read_epoch;
	for (size_t i = 0; i < ELEMENTS(leading); i++)
		if (starts_with(s, leading[i].word))
			return leading[i].read;
	if (first == '@')
		return read_nickname;
	if (first == 'P' || first == 'p')
		return read_iso;
	if ((first == 'R' || first == 'r') && memchr(s->text + s->pos, '/', s->end - s->pos))
		return read_repetition;
	if (phrase_looks_like(s))
		return read_moment;
	return read_cron;
}

enum schedule_syntax schedule_syntax(const char *text)
{
	static const struct {
		bool (*read)(struct reader *r);
		enum schedule_syntax syntax;
	} forms[] = {
		{ read_epoch, SYNTAX_MOMENT },
		{ read_moment, SYNTAX_MOMENT },
		{ read_every, SYNTAX_EVERY },
		{ read_after_finish, SYNTAX_AFTER_FINISH },
		{ read_manual, SYNTAX_MANUAL },
		{ read_nickname, SYNTAX_NICKNAME },
		{ read_iso, SYNTAX_ISO },
		{ read_repetition, SYNTAX_ISO },
	};
	struct scan s = { .text = text, .end = strnlen(text, SCHEDULE_TEXT_MAX) };
	bool (*read)(struct reader *r);

	scan_blanks(&s);
	read = choose(&s);
	if (read == read_every && scan_peek(&s) == '@')
		return SYNTAX_NICKNAME;
	for (size_t i = 0; i < ELEMENTS(forms); i++)
		if (forms[i].read == read)
			return forms[i].syntax;
	return SYNTAX_CRON;
}

/* Seconds at or after t, within the range of our arithmetic. */
static int64_t round_up(usec_t t)
{
	if (t <= 0)
		return 0;
	return t >= USEC_LAST ? TIME_LAST : t / USEC_SEC + (t % USEC_SEC != 0);
}

static bool fires(const struct schedule *s, struct scan *scan)
{
	usec_t slot;

	if (s->form == FORM_BOOT || s->form == FORM_MANUAL || schedule_first(s, &slot))
		return true;
	return scan_fail(scan, 0, "never fires before the end of 2199%s",
		s->from > 0 || s->until < TIME_LAST ? " within its bounds" : "");
}

bool schedule_parse(const char *text, const struct schedule_context *c, struct schedule **ret,
	struct err *e)
{
	AUTO(schedule) *out = xcalloc(1, sizeof *out);
	struct scan s = { .text = text, .end = strnlen(text, SCHEDULE_TEXT_MAX + 1), .e = e };
	struct reader r = { .s = &s, .c = c, .out = out };

	if (s.end > SCHEDULE_TEXT_MAX)
		return err_field(e, "schedule", "a schedule has at most %d characters", SCHEDULE_TEXT_MAX);
	while (s.end > 0 && (text[s.end - 1] == ' ' || text[s.end - 1] == '\t'))
		s.end--;
	scan_blanks(&s);
	if (scan_done(&s))
		return err_field(e, "schedule", "empty schedule; write 'now', 'every 15m', '0 2 * * *' ...");
	out->zone = c->zone ? c->zone : &zone_utc;
	out->anchor = round_up(c->anchor);
	out->start = c->anchor < 0 ? 0 : c->anchor / USEC_SEC + 1;
	out->from = round_up(c->from);
	out->until = c->until > 0 && c->until < USEC_LAST ? c->until / USEC_SEC : TIME_LAST;
	if (!choose(&s)(&r) || (!c->accepted && !fires(out, &s)))
		return false;
	*ret = STEAL(out);
	return true;
}
