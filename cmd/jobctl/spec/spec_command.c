/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a job definition as a 'jobctl add' command. */
#include "jobctl/spec/spec_command.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/duration.h"
#include "base/rfc3339.h"
#include "core/job/call.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "jobctl/spec/shell.h"
#include <inttypes.h>
#include <string.h>

static void put_option(struct buf *out, const char *flag, const char *value)
{
	buf_printf(out, " --%s ", flag);
	shell_quote(out, value);
}

/* Counts words up to five, the fewest that a cron expression can have. */
static int count_words_to_five(const char *text)
{
	int n = 0;

	for (text += strspn(text, " \t"); *text && n < 5; n++) {
		text += strcspn(text, " \t");
		text += strspn(text, " \t");
	}
	return n;
}

/*
 * An interval in canonical form as --every '15m since …' or --after-finish. The start is kept for
 * --every, because slots are counted from it; --after-finish does not use it.
 */
static bool put_interval_option(const char *text, struct buf *out)
{
	bool follows = text_starts(text, "after-finish PT");
	const char *from = follows ? text + strlen("after-finish ") : text;
	AUTO_TEXT interval = xstrndup(from, strcspn(from, " "));
	AUTO_TEXT value = NULL;
	char words[RFC3339_MAX];
	usec_t d;

	if (!text_starts(from, "PT") || !duration_parse(interval, &d, NULL))
		return false;
	duration_format(d, words);
	value = follows ? xstrdup(words) : xprintf("%s%s", words, from + strlen(interval));
	put_option(out, follows ? "after-finish" : "every", value);
	return true;
}

/* Chooses the option that fits the form of the schedule. */
static void put_schedule_option(const char *text, bool alone, struct buf *out)
{
	static const struct {
		const char *before, *flag;
	} whens[] = {{"every ", "every"}, {"now + ", "in"}, {"after-finish ", "after-finish"}};

	if (alone && strcmp(text, "@reboot") == 0) {
		put_option(out, "on", "boot");
		return;
	}
	if (alone && strcmp(text, "manual") == 0) {
		buf_str(out, " --manual");
		return;
	}
	if (alone && put_interval_option(text, out))
		return;
	for (size_t k = 0; alone && k < ELEMENTS(whens); k++)
		if (text_starts(text, whens[k].before)) {
			put_option(out, whens[k].flag, text + strlen(whens[k].before));
			return;
		}
	if (!alone || count_words_to_five(text) >= 5)
		put_option(out, "cron", text);
	else
		put_option(out, *text == 'P' || *text == 'R' ? "iso" : "at", text);
}

static void put_schedule_options(const struct job_spec *s, struct buf *out)
{
	for (size_t i = 0; i < s->schedule.n; i++)
		if (strcmp(s->schedule.v[i], "now") != 0)
			put_schedule_option(s->schedule.v[i], s->schedule.n == 1, out);
}

static void put_number_option(const struct job_field *f, int64_t n, struct buf *out)
{
	AUTO_TEXT text = n == f->preset ? NULL : job_field_print(f, n);

	if (text && f->bare)
		buf_printf(out, " --%s", f->flag);
	else if (text)
		put_option(out, f->flag, text);
}

static void put_pair_options(const struct job_field *f, const struct strv *pairs,
	bool (*secret)(const char *), struct buf *out)
{
	for (size_t i = 0; i < pairs->n; i++) {
		const char *pair = pairs->v[i];
		AUTO_TEXT masked = NULL;

		if (secret && secret(pair))
			masked = xprintf("%.*s=***", (int)strcspn(pair, "="), pair);
		put_option(out, f->flag, masked ? masked : pair);
	}
}

/* Whether it can be an argument. */
static bool blob_is_word(const struct blob *b)
{
	return strlen(b->data) == b->len && b->data[0] != '@';
}

/* Standard input is piped to the command. The body of a call is an argument, unless it contains a NUL. */
static void put_blob_option(const struct job_field *f, const struct blob *b, bool piped, struct buf *out)
{
	if (!b->data)
		return;
	if (piped)
		put_option(out, f->flag, "-");
	else
		put_option(out, f->flag, blob_is_word(b) ? b->data : "@-");
}

static void put_field_option(const struct job_field *f, const struct job_spec *s,
	bool (*secret)(const char *), struct buf *out)
{
	const void *at = (const char *)s + f->offset;

	switch (f->type) {
	case FIELD_TEXT:
		if (*(char *const *)at)
			put_option(out, f->flag, *(char *const *)at);
		break;
	case FIELD_LIST:
	case FIELD_MAP:
		put_pair_options(f, at, f->type == FIELD_MAP ? secret : NULL, out);
		break;
	case FIELD_BLOB:
		put_blob_option(f, at, f->offset == offsetof(struct job_spec, stdin_data), out);
		break;
	default:
		put_number_option(f, *(const int64_t *)at, out);
	}
}

/* A printf command whose output is piped to 'jobctl add' as the standard input of the job. */
static void put_stdin(const struct blob *data, struct buf *out)
{
	AUTO_DONE(buf) coded = {};

	buf_str(out, "printf %s ");
	if (strlen(data->data) == data->len) {
		shell_quote(out, data->data);
		buf_str(out, " | ");
		return;
	}
	buf_base64(&coded, data->data, data->len);
	buf_printf(out, "%s | base64 -d | ", coded.data);
}

/*
 * A single word: 'jobctl add' runs it with a shell if it contains shell syntax. A script without
 * shell syntax gets a leading blank, and a command with shell syntax is quoted, so that the kind is
 * kept.
 */
static void put_command_word(const struct job_spec *s, struct buf *out)
{
	AUTO_DONE(buf) quoted = {};

	if (s->script) {
		if (!shell_syntax(s->script))
			buf_char(&quoted, ' ');
		buf_str(&quoted, s->script);
	} else if (shell_syntax(s->command.v[0])) {
		shell_quote(&quoted, s->command.v[0]);
	} else {
		buf_str(&quoted, s->command.v[0]);
	}
	buf_char(out, ' ');
	shell_quote(out, quoted.data);
}

void spec_command_write(const struct job_spec *s, bool (*secret)(const char *pair), struct buf *out)
{
	if (s->stdin_data.data)
		put_stdin(&s->stdin_data, out);
	else if (s->body.data && !blob_is_word(&s->body))
		put_stdin(&s->body, out);
	else if (s->message.data && !blob_is_word(&s->message))
		put_stdin(&s->message, out);
	buf_str(out, "jobctl add");
	for (size_t i = 0; i < job_fields_count; i++)
		if (job_fields[i].flag)
			put_field_option(&job_fields[i], s, secret, out);
	put_schedule_options(s, out);
	if (call_kind_of(s) != CALL_NONE)
		return;
	buf_str(out, " --");
	if (s->script || s->command.n == 1) {
		put_command_word(s, out);
		return;
	}
	for (size_t i = 0; i < s->command.n; i++) {
		buf_char(out, ' ');
		shell_quote(out, s->command.v[i]);
	}
}
