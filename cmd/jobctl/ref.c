/* SPDX-License-Identifier: Apache-2.0 */
/* Parses references to jobs or runs; prints them. */
#include "jobctl/ref.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool all_digits(const char *s, size_t len)
{
	return len > 0 && strspn(s, "0123456789") >= len;
}

static bool parse_job(const char *text, size_t len, struct ref *r, struct err *e)
{
	char word[sizeof r->name];

	if (len >= sizeof word)
		return err_set(e, ERR_INVALID, "'%.64s…' is too long for a job name", text);
	memcpy(word, text, len);
	word[len] = 0;
	if (all_digits(word, len)) {
		if (!text_parse_int(word, 1, INT64_MAX, &r->job))
			return err_set(e, ERR_INVALID, "'%s' is not a job number", word);
		return true;
	}
	if (!job_name_check(word, NULL))
		return err_set(e, ERR_INVALID,
			"'%s' is not a reference to a job or run; write a number, a name or NAME#RUN",
			text);
	memcpy(r->name, word, len + 1);
	return true;
}

bool ref_parse(const char *text, struct ref *ret, struct err *e)
{
	const char *hash = strchr(text, '#');
	struct ref r = {.text = text};

	if (hash && !text_parse_int(hash + 1, 1, INT64_MAX, &r.run))
		return err_set(e, ERR_INVALID,
			"'%s' is not a reference to a run: a number must follow the '#'", text);
	if (hash != text && !parse_job(text, hash ? (size_t)(hash - text) : strlen(text), &r, e))
		return false;
	*ret = r;
	return true;
}

bool ref_job_matches(const struct ref *r, int64_t job, const char *name)
{
	if (r->job)
		return r->job == job;
	return !r->name[0] || (name && strcmp(r->name, name) == 0);
}

static void name_or_number(const json_t *name, const json_t *number, struct buf *out)
{
	if (json_is_string(name))
		buf_str(out, json_string_value(name));
	else
		buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
}

void ref_of_job(const json_t *job, struct buf *out)
{
	name_or_number(json_object_get(job, "name"), json_object_get(job, "id"), out);
}

void ref_of_run(const json_t *run, struct buf *out)
{
	name_or_number(json_object_get(run, "job_name"), json_object_get(run, "job"), out);
	buf_printf(out, "#%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(run, "id")));
}

void ref_job_words(const json_t *job, struct buf *out)
{
	const char *name = json_string_value(json_object_get(job, "name"));

	buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(job, "id")));
	if (name)
		buf_printf(out, " '%s'", name);
}
