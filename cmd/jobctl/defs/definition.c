/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of jobs for files, with secrets masked, and their differences. */
#include "jobctl/defs/definition.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/job_object.h"
#include "wire/spec_json.h"
#include <string.h>

static void mask_values(json_t *map)
{
	const char *name;
	json_t *v;
	void *next;

	json_object_foreach_safe(map, next, name, v)
		if (job_env_secret(name))
			json_object_set_new(map, name, json_null());
}

/* The warrant, the trace context and the origin belong to a submission and not to a definition. */
static void drop_quiet_fields(json_t *o)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		AUTO_TEXT coded = xprintf("%s_b64", job_fields[i].name);

		if (!job_fields[i].quiet)
			continue;
		json_object_del(o, job_fields[i].name);
		json_object_del(o, coded);
	}
}

json_t *definition_of_job(const json_t *job, bool reveal, struct err *e)
{
	static const char *const masked[] = {"env", "env_b64", "params", "params_b64"};
	AUTO_DONE(job_spec) spec;
	json_t *o;

	job_spec_init(&spec);
	if (!job_object_read_spec(job, &spec, e))
		return NULL;
	if (text_equal(spec.queue, "default")) /* also shown for a definition without a queue */
		free(STEAL(spec.queue));
	o = spec_json_write(&spec);
	drop_quiet_fields(o);
	for (size_t i = 0; !reveal && i < ELEMENTS(masked); i++)
		mask_values(json_object_get(o, masked[i]));
	return o;
}

static bool has_line(const struct buf *text, const char *line, size_t len)
{
	for (const char *at = text->data; at && *at;
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (strncmp(at, line, len) == 0 && (at[len] == '\n' || !at[len]))
			return true;
	return false;
}

/* Lines of 'of' that 'without' does not have. */
static void put_lines_only_in(char sign, const struct buf *of, const struct buf *without,
	struct buf *out)
{
	for (const char *at = of->data; at && *at;
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		size_t len = strcspn(at, "\n");

		if (has_line(without, at, len))
			continue;
		buf_char(out, sign);
		buf_char(out, ' ');
		text_escape(out, at, len);
		buf_char(out, '\n');
	}
}

void definition_diff(const struct buf *before, const struct buf *after, struct buf *out)
{
	put_lines_only_in('-', before, after, out);
	put_lines_only_in('+', after, before, out);
}
