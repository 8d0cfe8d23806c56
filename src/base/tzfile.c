/* SPDX-License-Identifier: Apache-2.0 */
/* Reads time zone files as bytes. */
#include "base/tzfile.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/edit_distance.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TZFILE_MAX (256 * 1024)
#define TZDIR_DEFAULT "/usr/share/zoneinfo"

/* Appends the zone names in zone.tab (third column). Nothing is appended if the file is missing. */
static void zone_names_read(const char *dir, struct strv *names)
{
	AUTO_TEXT path = xprintf("%s/zone.tab", dir);
	AUTO_DONE(buf) text = {};

	if (io_read_file(path, &text, TZFILE_MAX) < 0 || !text.len)
		return;
	for (const char *line = text.data, *end; *line; line = end + (*end == '\n')) {
		const char *at = line;

		end = line + strcspn(line, "\n");
		for (int tabs = 0; tabs < 2 && *at != '#' && at < end; at++)
			tabs += *at == '\t';
		if (*line != '#' && at < end)
			strv_take(names, xstrndup(at, strcspn(at, "\t\n")));
	}
}

/*
 * Appends a suggestion: the zone with the smallest edit distance, or the one whose city was given
 * alone.
 */
static void zone_suggest(const char *dir, const char *name, struct buf *out)
{
	AUTO_DONE(strv) names = {};
	const char *best;

	zone_names_read(dir, &names);
	best = edit_distance_nearest(name, &names);
	for (size_t i = 0; i < names.n && !best; i++) {
		const char *city = strrchr(names.v[i], '/');

		if (strcasecmp(names.v[i], name) == 0 || (city && strcasecmp(city + 1, name) == 0))
			best = names.v[i];
	}
	if (best)
		buf_printf(out, "did you mean '%s'?", best);
	else
		buf_str(out, "names are like 'Europe/Berlin' or 'UTC'");
}

bool tzfile_read(const char *name, struct buf *out, struct err *e)
{
	const char *given = getenv("TZDIR"), *dir = given && *given ? given : TZDIR_DEFAULT;
	AUTO_TEXT path = xprintf("%s/%s", dir, name);
	int r = io_read_file(path, out, TZFILE_MAX);

	if (r == -ENOENT || r == -ENOTDIR || r == -EISDIR) {
		AUTO_DONE(buf) hint = {};

		zone_suggest(dir, name, &hint);
		return err_field(e, "tz", "no time zone '%s'; %s", name, hint.data);
	}
	if (r < 0)
		return err_field(e, "tz", "time zone '%s' could not be read: %s", name, strerror(-r));
	return true;
}
