/* SPDX-License-Identifier: Apache-2.0 */
/* Converts job definitions to lines of a crontab(5), with comments for what is lost. */
#include "jobctl/defs/crontab_write.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/job/job.h"
#include "core/job/job_diff.h"
#include "core/job/job_fields.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/shell.h"
#include <inttypes.h>
#include <string.h>

static bool printable_text(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

/* NULL: nothing is known that prevents the job from being expressed. */
static const char *obstacle(const struct crontab_write *w, const struct job_spec *s)
{
	if (s->schedule.n == 0)
		return "it has no schedule";
	if (s->tz && strcmp(s->tz, w->zone) != 0)
		return "its time zone is not that of the machine";
	if (s->script && (text_starts(s->script, "#!") || !printable_text(s->script)))
		return "its script has several lines";
	for (size_t i = 0; i < s->command.n; i++)
		if (!printable_text(s->command.v[i]))
			return "its command contains control characters";
	for (size_t i = 0; i < s->env.n; i++) {
		if (!printable_text(s->env.v[i]))
			return "its environment contains control characters";
		if (!w->reveal && job_env_secret(s->env.v[i]))
			return "a variable looks like a secret; --reveal writes it";
	}
	if (s->stdin_data.data && memchr(s->stdin_data.data, '\0', s->stdin_data.len))
		return "its standard input contains NUL bytes";
	return s->params.n ? "it has parameters" : NULL;
}

/* The settings that a crontab cannot express. */
static void put_losses(const struct job_spec *s, struct buf *out)
{
	static const char *const expressed[] = {
		"name", "command", "script", "schedule", "tz", "env", "cwd", "umask", "stdin", "warrant", "template"};
	AUTO_DONE(job_spec) preset;
	const char *comma = "# left out: ";

	job_spec_init(&preset);
	for (size_t i = 0; i < job_fields_count; i++) {
		bool skip = job_fields[i].quiet || job_diff_field_equal(&job_fields[i], s, &preset) ||
			    (strcmp(job_fields[i].name, "queue") == 0 && text_equal(s->queue, "default"));

		for (size_t k = 0; k < ELEMENTS(expressed); k++)
			skip |= strcmp(expressed[k], job_fields[i].name) == 0;
		if (skip)
			continue;
		buf_printf(out, "%s%s", comma, job_fields[i].name);
		comma = ", ";
	}
	if (comma[0] == ',')
		buf_char(out, '\n');
}

static void shell_command(const struct job_spec *s, struct buf *out)
{
	if (s->umask != job_field_find("umask")->preset)
		buf_printf(out, "umask %03" PRIo64 "; ", (uint64_t)s->umask);
	if (s->cwd) {
		buf_str(out, "cd ");
		shell_quote(out, s->cwd);
		buf_str(out, " && ");
	}
	for (size_t i = 0; i < s->env.n; i++) {
		const char *value = strchr(s->env.v[i], '=') + 1;

		/* a script may consist of several commands, so its variables are exported */
		buf_printf(out, "%s%.*s", s->script ? "export " : "", (int)(value - s->env.v[i]),
			s->env.v[i]);
		shell_quote(out, value);
		buf_str(out, s->script ? "; " : " ");
	}
	if (s->script)
		buf_str(out, s->script);
	for (size_t i = 0; i < s->command.n; i++) {
		if (i > 0)
			buf_char(out, ' ');
		shell_quote(out, s->command.v[i]);
	}
}

/* The number of the day or month whose name 'at' begins with; -1: none. */
static int named_number(const char *at, bool end_of_range)
{
	static const struct {
		const char *name;
		int number;
	} names[] = {{"MON", 1}, {"TUE", 2}, {"WED", 3}, {"THU", 4}, {"FRI", 5}, {"SAT", 6}, {"JAN", 1},
		{"FEB", 2}, {"MAR", 3}, {"APR", 4}, {"MAY", 5}, {"JUN", 6}, {"JUL", 7}, {"AUG", 8},
		{"SEP", 9}, {"OCT", 10}, {"NOV", 11}, {"DEC", 12}};

	if (text_starts(at, "SUN"))
		return end_of_range ? 7 : 0;
	for (size_t i = 0; i < ELEMENTS(names); i++)
		if (text_starts(at, names[i].name))
			return names[i].number;
	return -1;
}

/* crontab(5) allows no ranges or lists of names, so MON-FRI is written as 1-5. */
static void put_schedule(const char *text, struct buf *out)
{
	for (const char *at = text; *at;) {
		int number = named_number(at, at > text && at[-1] == '-');

		if (number < 0) {
			buf_char(out, *at++);
			continue;
		}
		buf_printf(out, "%d", number);
		at += 3;
	}
}

/* Debian's cron turns '\\\\' into '\\' and '\\%' into '%'. Other backslashes are kept, by cronie, too. */
static void put_command(const char *at, struct buf *out)
{
	while (*at) {
		size_t slashes = strspn(at, "\\");

		for (size_t i = 0; i < slashes; i++)
			buf_str(out, slashes > 1 || at[slashes] == '%' ? "\\\\" : "\\");
		at += slashes;
		if (*at == '%')
			buf_char(out, '\\');
		if (*at)
			buf_char(out, *at++);
	}
}

/* The text after the first '%' is the standard input; each further one is a newline. */
static void put_input(const struct blob *input, struct buf *out)
{
	buf_char(out, '%');
	for (size_t i = 0; i < input->len; i++) {
		char c = input->data[i];

		if (c == '%')
			buf_char(out, '\\');
		buf_char(out, c == '\n' ? '%' : c);
	}
}

/* Reads the line as cron does. NULL: it means the job. */
static const char *line_differs(const struct buf *line, const char *schedule, const char *command, const struct blob *input)
{
	const struct crontab_options o = {.mode = CRONTAB_DEBIAN};
	const struct crontab_finding *bad;
	const struct crontab_entry *e;
	AUTO_DONE(buf) text = {};
	AUTO(crontab) *t = NULL;

	crontab_parse(line->data, line->len, &o, &t);
	bad = crontab_first_error(t);
	if (bad && strcmp(bad->code, "command-too-long") == 0)
		return "its command is longer than cron reads";
	if (bad || t->n_entries != 1)
		return "its schedule is not one of five fields";
	e = &t->entries[0];
	crontab_schedule(e, &text);
	if (strcmp(text.data, schedule) != 0)
		return "its schedule is not one of five fields";
	if (strcmp(e->command, command) != 0)
		return "cron would read its command differently";
	if (strlen(e->input ? e->input : "") != input->len || (input->len && memcmp(e->input, input->data, input->len) != 0))
		return "cron would read its standard input differently";
	return NULL;
}

/* NULL: the lines were appended. */
static const char *put_lines(const struct job_spec *s, size_t *n, struct buf *out)
{
	AUTO_DONE(buf) command = {};

	shell_command(s, &command);
	for (size_t i = 0; i < s->schedule.n; i++) {
		AUTO_DONE(buf) line = {};
		const char *why;

		put_schedule(s->schedule.v[i], &line);
		buf_char(&line, ' ');
		put_command(command.data, &line);
		if (s->stdin_data.len)
			put_input(&s->stdin_data, &line);
		buf_char(&line, '\n');
		why = line_differs(&line, s->schedule.v[i], command.data, &s->stdin_data);
		if (why)
			return why;
		buf_add(out, line.data, line.len);
		++*n;
	}
	return NULL;
}

void crontab_write_job(struct crontab_write *w, const struct job_spec *s, struct buf *out)
{
	const char *why = obstacle(w, s);
	AUTO_DONE(buf) lines = {};
	size_t n = 0;

	w->jobs++;
	if (!why)
		why = put_lines(s, &n, &lines);
	if (why) {
		w->refused++;
		buf_printf(out, "# %s: not in this crontab: %s\n", s->name ? s->name : "a job without a name", why);
		return;
	}
	if (s->name)
		buf_printf(out, "# %s\n", s->name);
	put_losses(s, out);
	buf_add(out, lines.data, lines.len);
	w->lines += n;
}
