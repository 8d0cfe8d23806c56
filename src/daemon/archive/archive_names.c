/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and parses the names of archived objects. */
#include "daemon/archive/archive_names.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/job/job.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void archive_name_encode(struct buf *out, const char *text, bool dash)
{
	for (; text && *text; text++)
		if (isalnum((unsigned char)*text) || *text == '_' || *text == '.' || (*text == '-' && dash))
			buf_char(out, *text);
		else
			buf_printf(out, "~%02x", (unsigned char)*text);
}

static void day_add(struct buf *out, const char *directory, usec_t slot)
{
	time_t seconds = (time_t)(slot / USEC_SEC);
	struct tm tm = {};
	char text[64];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y/%m/%d/%H%M%S", &tm);
	buf_printf(out, "%s/%s", directory, text);
}

char *archive_name_of_run(const struct run *r)
{
	AUTO_DONE(buf) name = {};

	day_add(&name, "runs", r->slot);
	buf_printf(&name, "-r%" PRId64 "-o%" PRId64 "-j%" PRId64 "-%s-", r->id, r->uid, r->job, run_state_name(r->state));
	archive_name_encode(&name, r->owner, false);
	buf_char(&name, '-');
	archive_name_encode(&name, r->job_name, true);
	buf_str(&name, ".json");
	return buf_steal(&name);
}

char *archive_name_of_output(usec_t slot, int64_t run, int64_t attempt)
{
	AUTO_DONE(buf) name = {};

	day_add(&name, "output", slot);
	buf_printf(&name, "-r%" PRId64 ".%" PRId64, run, attempt);
	return buf_steal(&name);
}

char *archive_name_of_job(const struct job *j)
{
	AUTO_DONE(buf) name = {};

	buf_printf(&name, "jobs/j%" PRId64 "-o%" PRId64 "-", j->id, j->uid);
	archive_name_encode(&name, j->name, true);
	buf_str(&name, ".json");
	return buf_steal(&name);
}

char *archive_name_from(usec_t slot)
{
	AUTO_DONE(buf) name = {};

	day_add(&name, "runs", slot);
	return buf_steal(&name);
}

bool archive_name_parse(const char *name, struct archive_run_name *ret)
{
	struct archive_run_name n = {};
	AUTO_TEXT state = NULL;
	struct tm tm = {};
	const char *at, *dash;
	int used = 0;

	if (strlen(name) > ARCHIVE_NAME_MAX ||
		sscanf(name, "runs/%4d/%2d/%2d/%2d%2d%2d-r%19" SCNd64 "-o%19" SCNd64 "-j%19" SCNd64 "-%n", &tm.tm_year, &tm.tm_mon,
			&tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n.run, &n.owner, &n.job, &used) != 9 ||
		used == 0 || n.run <= 0 || n.owner < 0 || n.job < 0)
		return false;
	at = name + used;
	for (const char *s = at; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("._~-", *s))
			return false;
	dash = strchr(at, '-');
	if (!dash)
		return false;
	state = xstrndup(at, (size_t)(dash - at));
	n.user = dash + 1;
	dash = strchr(n.user, '-');
	if (!run_state_parse(state, &n.state) || !dash)
		return false;
	n.user_len = (size_t)(dash - n.user);
	n.name = dash + 1;
	n.name_len = strlen(n.name);
	if (n.name_len < 5 || strcmp(n.name + n.name_len - 5, ".json") != 0)
		return false;
	n.name_len -= 5;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	n.slot = (usec_t)timegm(&tm) * USEC_SEC;
	*ret = n;
	return true;
}
