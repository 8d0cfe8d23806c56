/* SPDX-License-Identifier: Apache-2.0 */
/* Adds list filter options to the query of an API path. */
#include "jobctl/filters.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/moment.h"
#include <string.h>

bool filter_time(struct buf *path, const struct args *a, const char *name, usec_t now,
	struct err *e)
{
	const char *text = args_last(a, name);
	const struct moment_how how = {.now = now, .back = true};
	char instant[RFC3339_MAX];
	usec_t t;

	if (!text)
		return true;
	if (!moment_parse(text, &how, &t, e))
		return err_wrap(e, "--%s", name);
	api_query_add(path, name, rfc3339_format(t, instant));
	return true;
}

bool filter_limit(const struct args *a, size_t preset, size_t *ret, struct err *e)
{
	const char *text = args_last(a, "limit");
	int64_t n = (int64_t)preset;

	if (text && !text_parse_int(text, 0, INT64_MAX, &n))
		return err_set(e, ERR_INVALID, "--limit: '%s' is not a number of rows", text);
	*ret = (size_t)n;
	return true;
}

bool filter_states(struct buf *path, const struct args *a, filter_state_fn *is_state, struct err *e)
{
	for (size_t i = 0; i < args_count(a, "state"); i++) {
		AUTO_TEXT list = xstrdup(args_nth(a, "state", i));
		char *save = NULL;

		for (char *word = strtok_r(list, ",", &save); word;
			word = strtok_r(NULL, ",", &save)) {
			if (!is_state(word))
				return err_set(e, ERR_INVALID,
					"--state: there is no state '%s'; see States in jobctl(1)", word);
			api_query_add(path, "state", word);
		}
	}
	return true;
}

bool filter_tags_check(const struct args *a, struct err *e)
{
	for (size_t i = 0; i < args_count(a, "tag"); i++)
		if (!strchr(args_nth(a, "tag", i), '='))
			return err_set(e, ERR_INVALID, "--tag: '%s' is not KEY=VALUE",
				args_nth(a, "tag", i));
	return true;
}
