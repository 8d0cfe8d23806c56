/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a time: a duration, RFC 3339, a Unix time or a phrase. */
#include "jobctl/moment.h"

#include "base/auto.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/phrase.h"
#include "core/time/scan.h"
#include "core/time/zone_cache.h"
#include "jobctl/local_zone.h"
#include <string.h>

static bool parse_moment_phrase(const char *text, const struct moment_how *how, usec_t *ret,
	struct err *e)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_TEXT here = how->tz ? NULL : local_zone();
	struct err why = {};
	struct scan s = {.text = text, .end = strnlen(text, SCHEDULE_TEXT_MAX), .e = &why};
	struct phrase_context c = {.now = how->now / USEC_SEC,
		.past_ok = true,
		.whole_days = true,
		.back = how->back};
	int64_t t;

	if (!zone_cache_get(zones, how->tz ? how->tz : here, &c.zone, e))
		return false;
	while (s.end > 0 && (text[s.end - 1] == ' ' || text[s.end - 1] == '\t'))
		s.end--;
	scan_blanks(&s);
	if (scan_done(&s))
		return err_set(e, ERR_INVALID,
			"a time is missing; write 2h, yesterday, 2026-11-16 or 2026-11-16T09:00:00Z");
	if (!phrase_scan(&s, &c, &t))
		return err_set(e, ERR_INVALID, "%s", why.msg);
	*ret = t * USEC_SEC;
	return true;
}

bool moment_parse(const char *text, const struct moment_how *how, usec_t *ret, struct err *e)
{
	struct err why = {};
	usec_t d;

	if (duration_parse(text, &d, NULL)) {
		if (how->back ? d > how->now : d > USEC_LAST - how->now)
			return err_set(e, ERR_INVALID, "'%s' is outside the years 1970 to 2199",
				text);
		*ret = how->back ? how->now - d : how->now + d;
		return true;
	}
	if (rfc3339_parse(text, ret, &why))
		return true;
	if (*text == '@') {
		*e = why;
		return false;
	}
	return parse_moment_phrase(text, how, ret, e);
}
