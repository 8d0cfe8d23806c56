/* SPDX-License-Identifier: Apache-2.0 */
/* Options of lists that several verbs have: times, limits. */
#include "filters.h"

#include "api.h"
#include "args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

bool filter_time(struct buf *path, const struct args *a, const char *name, usec_t now, struct err *e)
{
	const char *text = args_last(a, name);
	char instant[RFC3339_MAX];
	usec_t t;

	if (!text)
		return true;
	if (parse_duration(text, &t, NULL) && t < now)
		t = now - t;
	else if (!parse_rfc3339(text, &t, NULL))
		return err_set(e, ERR_INVALID,
			"--%s: '%s' is no time; write 2026-11-16T09:00:00Z, @1700000000, or 2h for two hours ago",
			name, text);
	query_add(path, name, format_rfc3339(t, instant));
	return true;
}

bool filter_limit(const struct args *a, size_t preset, size_t *ret, struct err *e)
{
	const char *text = args_last(a, "limit");
	int64_t n = (int64_t)preset;

	if (text && !parse_int(text, 0, INT64_MAX, &n))
		return err_set(e, ERR_INVALID, "--limit: '%s' is no number of rows", text);
	*ret = (size_t)n;
	return true;
}
