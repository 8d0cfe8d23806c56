/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the sandbox profile for 'show --sandbox'. */
#include "jobctl/render/sandbox.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/sandbox_profile.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include <string.h>

static void put_escaped(struct buf *out, const char *before, const char *text)
{
	buf_str(out, before);
	text_escape(out, text, strlen(text));
	buf_char(out, '\n');
}

static void put_profile(const json_t *s, struct buf *out)
{
	const json_t *line;
	size_t i;

	put_escaped(out, "sandbox ", member_text(s, "name"));
	json_array_foreach(json_object_get(s, "applies"), i, line)
		put_escaped(out, "  ", json_string_value(line) ? json_string_value(line) : "");
	if (member_text(s, "missing"))
		put_escaped(out, "  missing on this machine: ", member_text(s, "missing"));
	if (!json_is_true(json_object_get(s, "available")))
		buf_str(out,
			"  not available on this machine: runs will not start; choose another profile with 'jobctl set JOB sandbox=PROFILE'\n");
}

bool sandbox_describe(struct ctl *c, const char *profile, struct buf *out, struct err *e)
{
	json_auto_t *answer = NULL;
	const json_t *s;
	size_t i;

	if (!profile)
		profile = SANDBOX_PRESET;
	if (!api_call(c, "GET", "/v1/sandboxes", NULL, &answer, e))
		return false;
	json_array_foreach(json_object_get(answer, "sandboxes"), i, s)
		if (text_equal(member_text(s, "name"), profile)) {
			put_profile(s, out);
			return true;
		}
		return err_set(e, ERR_NOT_FOUND,
			"there is no sandbox profile '%s' on this machine: runs of the job will not start; choose "
			"another with 'jobctl set JOB sandbox=PROFILE'",
			profile);
}
