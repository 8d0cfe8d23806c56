/* SPDX-License-Identifier: Apache-2.0 */
/* Converts schedule options (--at, --every, --cron …) to schedules. */
#include "jobctl/spec/when_args.h"

#include "base/auto.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/text.h"
#include "core/time/interval.h"
#include "core/time/phrase.h"
#include "core/time/scan.h"
#include "core/time/schedule.h"
#include "core/time/zone.h"
#include "jobctl/args.h"
#include <inttypes.h>
#include <string.h>

static bool as_written(const char *value, char **ret, struct err *e)
{
	(void)e;
	*ret = xstrdup(value);
	return true;
}

static bool as_every(const char *value, char **ret, struct err *e)
{
	(void)e;
	*ret = xprintf("every %s", value);
	return true;
}

/*
 * "now + …" takes one number with a unit. A duration with several units is converted: 1h30m to
 * 5400s.
 */
static bool as_in(const char *value, char **ret, struct err *e)
{
	const char *unit = value + strspn(value, "0123456789");
	usec_t d;

	if (!duration_parse(value, &d, e))
		return false;
	*ret = interval_unit_find(unit)
		       ? xprintf("now + %s", value)
		       : xprintf("now + %" PRId64 "s", (d + USEC_SEC - 1) / USEC_SEC);
	return true;
}

static bool as_after_finish(const char *value, char **ret, struct err *e)
{
	(void)e;
	*ret = xprintf("after-finish %s", value);
	return true;
}

static bool as_on(const char *value, char **ret, struct err *e)
{
	if (strcmp(value, "boot") != 0)
		return err_set(e, ERR_INVALID, "'%s' is not an event; the only event is 'boot'",
			value);
	*ret = xstrdup("@reboot");
	return true;
}

static bool as_manual(const char *value, char **ret, struct err *e)
{
	(void)value;
	(void)e;
	*ret = xstrdup("manual");
	return true;
}

static const struct when {
	const char *flag;
	bool (*make)(const char *value, char **ret, struct err *e);
	bool many;
} whens[] = {
	{"at", as_written, false},
	{"in", as_in, false},
	{"every", as_every, false},
	{"cron", as_written, true},
	{"iso", as_written, false},
	{"after-finish", as_after_finish, false},
	{"on", as_on, false},
	{"manual", as_manual, false},
};

const char *when_args_flag(size_t i)
{
	return i < ELEMENTS(whens) ? whens[i].flag : NULL;
}

/* The option for each form of a schedule. */
static const struct {
	const char *name, *flag;
} forms[SYNTAX_MAX] = {
	[SYNTAX_MOMENT] = {"a time", "at"},
	[SYNTAX_EVERY] = {"an interval", "every"},
	[SYNTAX_AFTER_FINISH] = {"an interval after each run", "after-finish"},
	[SYNTAX_MANUAL] = {"no schedule", "manual"},
	[SYNTAX_NICKNAME] = {"a cron nickname", "cron"},
	[SYNTAX_ISO] = {"an ISO 8601 interval", "iso"},
	[SYNTAX_CRON] = {"a cron expression", "cron"},
};

static size_t count_words(const char *text)
{
	size_t n = 0;

	for (text += strspn(text, " \t"); *text; text += strspn(text, " \t"), n++)
		text += strcspn(text, " \t");
	return n;
}

/* Reports why the value is not a time, with the message of the phrase parser. */
static bool fail_moment(const char *value, struct err *e)
{
	struct err why = {};
	struct scan s = {.text = value, .end = strlen(value), .e = &why};
	const struct phrase_context c = {.zone = &zone_utc,
		.now = clock_now(&clock_system) / USEC_SEC};
	int64_t t;

	scan_blanks(&s);
	if (phrase_scan(&s, &c, &t))
		return true;
	return err_set(e, ERR_INVALID, "%s", why.msg);
}

/*
 * The schedule parser accepts every form, so each option checks that its value has its own form.
 * Text that is not recognised counts as cron; with fewer than five words it is a mistake in another
 * form.
 */
static bool check_form(const struct when *w, const char *value, const char *dashes, struct err *e)
{
	enum schedule_syntax syntax = schedule_syntax(value);
	bool cron = syntax == SYNTAX_CRON && count_words(value) >= 5;

	if (w->make != as_written)
		return !cron || strcmp(w->flag, "manual") == 0 ||
		       err_set(e, ERR_INVALID, "'%.64s' is a cron expression; use %scron", value,
			       dashes);
	if (strcmp(forms[syntax].flag, w->flag) == 0)
		return true;
	if (strcmp(w->flag, "at") == 0 && syntax == SYNTAX_CRON && !cron) {
		if (duration_parse(value, &(usec_t){0}, NULL))
			return err_set(e, ERR_INVALID, "'%.64s' is a duration; use %sin", value,
				dashes);
		return fail_moment(value, e);
	}
	if (syntax == SYNTAX_CRON && !cron)
		return true; /* the parser reports the error */
	return err_set(e, ERR_INVALID, "'%.64s' is %s; use %s%s", value, forms[syntax].name, dashes,
		forms[syntax].flag);
}

bool when_args_parse(const char *flag, const char *value, char **ret, struct err *e)
{
	for (size_t i = 0; i < ELEMENTS(whens); i++)
		if (strcmp(whens[i].flag, flag) == 0)
			return (check_form(&whens[i], value, "", e) &&
				       whens[i].make(value, ret, e)) ||
			       err_wrap(e, "%s", flag);
	return true;
}

static bool append_schedules(const struct args *a, const struct when *w, struct strv *schedules,
	struct err *e)
{
	for (size_t k = 0; k < args_count(a, w->flag); k++) {
		const char *value = args_nth(a, w->flag, k);
		char *text;

		if ((value && !check_form(w, value, "--", e)) || !w->make(value, &text, e))
			return err_wrap(e, "--%s", w->flag);
		strv_take(schedules, text);
	}
	return true;
}

bool when_args_read(const struct args *a, struct strv *schedules, struct err *e)
{
	const char *kind = NULL;

	for (size_t i = 0; i < ELEMENTS(whens); i++) {
		size_t n = args_count(a, whens[i].flag);

		if (n == 0)
			continue;
		if (kind)
			return err_set(e, ERR_INVALID, "give either --%s or --%s, not both", kind,
				whens[i].flag);
		if (n > 1 && !whens[i].many)
			return err_set(e, ERR_INVALID, "--%s can be given only once",
				whens[i].flag);
		kind = whens[i].flag;
		if (!append_schedules(a, &whens[i], schedules, e))
			return false;
	}
	return true;
}
