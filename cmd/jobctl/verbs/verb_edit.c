/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl edit'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/editor.h"
#include "jobctl/member.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/spec/spec_form.h"
#include "jobctl/spec/spec_patch.h"
#include "jobctl/verbs/change.h"
#include "jobctl/verbs/verbs.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STDIN_SHOWN (64 * 1024) /* bytes: a larger standard input is not put into the editor */
#define NOTE "#! "              /* begins the lines that show the last error */

/* A job that is being edited. */
struct edit_session {
	json_t *job;            /* owned: as read from the daemon */
	struct job_spec before; /* its definition */
	struct blob kept;       /* its standard input if that is too large to be edited */
	struct editor editor;
	struct buf text;        /* for the editor */
};

static void edit_session_done(struct edit_session *s)
{
	json_decref(s->job);
	job_spec_done(&s->before);
	blob_done(&s->kept);
	editor_done(&s->editor);
	buf_done(&s->text);
}

static bool read_definition(struct edit_session *s, struct err *e)
{
	job_spec_done(&s->before);
	job_spec_init(&s->before);
	if (!job_object_read_spec(s->job, &s->before, e)) {
		err_wrap(e, "cannot read the job that the daemon sent");
		e->kind = ERR_INTERNAL;
		return false;
	}
	if (s->before.stdin_data.len > STDIN_SHOWN) {
		blob_done(&s->kept);
		s->kept = s->before.stdin_data;
		s->before.stdin_data = (struct blob){};
	}
	return true;
}

static void put_header(const struct edit_session *s, struct buf *out)
{
	AUTO_DONE(buf) words = {};

	ref_job_words(s->job, &words);
	buf_printf(out,
		"# Job %s, revision %" PRId64
		". Save and exit to change it; an unchanged text changes nothing.\n"
		"# Lines that begin with '#' are ignored. Missing keys get their defaults.\n",
		words.data, member_int(s->job, "revision"));
	if (s->before.template)
		buf_printf(out, "# It was created from the template '%s'.\n", s->before.template);
	if (s->kept.data)
		buf_printf(out,
			"# Its standard input (%zu bytes) is not shown and is kept; 'jobctl set JOB stdin=FILE' replaces it.\n",
			s->kept.len);
	buf_char(out, '\n');
}

static void put_form(struct edit_session *s, const struct job_spec *spec)
{
	buf_clear(&s->text);
	put_header(s, &s->text);
	spec_form_write(spec, NULL, &s->text);
	buf_str(&s->text, "\n# Other keys, with their defaults:\n");
	spec_form_write_defaults(spec, &s->text);
}

/* Puts an error as comments at the top, and removes an earlier one. */
static void put_note(struct buf *text, const char *note)
{
	const char *rest = text->data ? text->data : "";
	AUTO_DONE(buf) out = {};

	while (text_starts(rest, NOTE))
		rest = strchr(rest, '\n') ? strchr(rest, '\n') + 1 : "";
	if (note) {
		AUTO_DONE(buf) shown = {};

		text_escape(&shown, note, strlen(note));
		buf_printf(&out,
			NOTE "%s\n" NOTE "Correct it, or exit without a change to give up.\n",
			shown.data);
	}
	buf_str(&out, rest);
	buf_done(text);
	*text = out;
	out = (struct buf){};
}

/* Keeps the edited text in its file, unless the error lies in the text itself. */
static int fail_keeping_text(struct edit_session *s, const struct err *e)
{
	if (s->editor.path && s->text.len && e->kind != ERR_INVALID) {
		ctl_say("jobctl: the edited text is in '%s'", s->editor.path);
		editor_keep(&s->editor);
	}
	return ctl_fail(e);
}

/* The job was changed by someone else: applies the user's changes to its new definition. */
static bool rebase(struct ctl *c, struct edit_session *s, const json_t *patch, struct err *e)
{
	AUTO_TEXT path = xprintf("/v1/jobs/%" PRId64, member_int(s->job, "id"));
	AUTO_DONE(job_spec) merged;
	json_auto_t *mine = json_copy((json_t *)patch);
	json_t *job = NULL;

	job_spec_init(&merged);
	json_object_del(mine, "revision");
	if (!api_call(c, "GET", path, NULL, &job, e))
		return false;
	json_decref(s->job);
	s->job = job;
	if (!read_definition(s, e) || !job_object_read_spec(s->job, &merged, e) ||
		!spec_json_merge(mine, &merged, e))
		return false;
	if (s->kept.data)
		blob_done(&merged.stdin_data);
	put_form(s, &merged);
	put_note(&s->text,
		"the job was changed meanwhile; this is its new definition with your changes");
	return true;
}

enum next { AGAIN, DONE };

/* Reads the edited text and sends the change. */
static enum next edit_round(struct ctl *c, struct edit_session *s, int *ret_code)
{
	AUTO_DONE(job_spec) after;
	json_auto_t *patch = NULL, *answer = NULL;
	struct err e = {};

	job_spec_init(&after);
	if (spec_form_read(s->text.data ? s->text.data : "", &after, &e)) {
		after.template = xstrdup(s->before.template);
		patch = spec_patch(&s->before, &after);
		if (json_object_size(patch) == 0) {
			ctl_say("nothing was changed");
			*ret_code = EXIT_SUCCESS;
			return DONE;
		}
		if (change_send(c, s->job, patch, member_int(s->job, "revision"), false, &answer,
			    &e)) {
			*ret_code = change_show(c, answer, false);
			return DONE;
		}
	}
	if (e.kind == ERR_INVALID || e.kind == ERR_TOO_LARGE || e.field[0]) {
		put_note(&s->text, e.msg);
		return AGAIN;
	}
	if (e.kind == ERR_CONFLICT && ctl_can_ask() &&
		ctl_ask("The job was changed meanwhile. Edit again?") && rebase(c, s, patch, &e))
		return AGAIN;
	*ret_code = fail_keeping_text(s, &e);
	return DONE;
}

/* A text that still has its error message and was not changed means that the user gives up. */
static bool text_is_unchanged(const struct edit_session *s, const char *shown, struct err *e)
{
	if (strcmp(s->text.data ? s->text.data : "", shown) != 0)
		return false;
	if (text_starts(shown, NOTE))
		err_set(e, ERR_INVALID, "%.*s; nothing was changed",
			(int)(strcspn(shown, "\n") - strlen(NOTE)), shown + strlen(NOTE));
	return true;
}

static int edit(struct ctl *c, struct edit_session *s)
{
	struct err e = {};
	int code = EXIT_SUCCESS;

	do {
		AUTO_TEXT shown = xstrdup(s->text.data);

		if (!editor_run(&s->editor, &s->text, &e))
			return ctl_fail(&e);
		if (text_is_unchanged(s, shown, &e)) {
			if (e.kind)
				return ctl_fail(&e);
			ctl_say("nothing was changed");
			return EXIT_SUCCESS;
		}
		put_note(&s->text, NULL);
	} while (edit_round(c, s, &code) == AGAIN);
	return code;
}

int verb_edit(struct ctl *c, const struct args *a)
{
	AUTO_DONE(edit_session) s = {};
	struct err e = {};
	struct ref ref;
	char *const *words;

	args_operands(a, &words);
	c->job_typed = words[0];
	c->yes = args_has(a, "yes");
	job_spec_init(&s.before);
	if (!ref_parse(words[0], &ref, &e) || !api_job(c, &ref, &s.job, &e) ||
		!read_definition(&s, &e))
		return ctl_fail(&e);
	put_form(&s, &s.before);
	return edit(c, &s);
}
