/* SPDX-License-Identifier: Apache-2.0 */
/* Turns --at, --in, --every, --cron, --iso, --after-finish and --on into schedules. */
#include "when_args.h"

#include "args.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/interval.h"
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

/* A phrase has one number and one unit, a duration may have several: 1h30m are 5400s. */
static bool as_in(const char *value, char **ret, struct err *e)
{
	const char *unit = value + strspn(value, "0123456789");
	usec_t d;

	if (!parse_duration(value, &d, e))
		return false;
	*ret = interval_unit_find(unit) ? xprintf("now + %s", value)
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
		return err_set(e, ERR_INVALID, "'%s' is no event; there is 'boot'", value);
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

bool when_from_word(const char *flag, const char *value, char **ret, struct err *e)
{
	for (size_t i = 0; i < ELEMENTS(whens); i++)
		if (strcmp(whens[i].flag, flag) == 0)
			return whens[i].make(value, ret, e) || err_wrap(e, "%s", flag);
	return true;
}

static bool take(const struct args *a, const struct when *w, struct strv *schedules, struct err *e)
{
	for (size_t k = 0; k < args_count(a, w->flag); k++) {
		char *text;

		if (!w->make(args_nth(a, w->flag, k), &text, e))
			return err_wrap(e, "--%s", w->flag);
		strv_take(schedules, text);
	}
	return true;
}

bool when_from_args(const struct args *a, struct strv *schedules, struct err *e)
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
			return err_set(e, ERR_INVALID, "--%s can be given only once", whens[i].flag);
		kind = whens[i].flag;
		if (!take(a, &whens[i], schedules, e))
			return false;
	}
	return true;
}
