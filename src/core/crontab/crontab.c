/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a crontab line by line. */
#include "core/crontab/crontab.h"

#include "base/buf.h"
#include "base/text.h"
#include "core/crontab/fields.h"
#include "core/crontab/setting.h"
#include "core/time/cron.h"
#include <string.h>

/* Lines after which Debian's cron gives up: the limit of crontab(1) and the lines of its header. */
#define DAEMON_LINES_MAX (CRONTAB_LINES_MAX + 3)
#define DELAY_MAX (24 * 60)

const char *const crontab_mode_names[CRONTAB_MODE_MAX] = { "debian", "cronie", "strict" };

bool crontab_mode_parse(const char *word, enum crontab_mode *ret)
{
	for (int i = 0; i < CRONTAB_MODE_MAX; i++)
		if (strcmp(word, crontab_mode_names[i]) == 0) {
			*ret = (enum crontab_mode)i;
			return true;
		}
	return false;
}

static void crontab_entry_done(struct crontab_entry *e)
{
	free(e->user);
	free(e->schedule);
	free(e->command);
	free(e->text);
	free(e->input);
	*e = (struct crontab_entry){};
}

void crontab_free(struct crontab *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_entries; i++)
		crontab_entry_done(&t->entries[i]);
	for (size_t i = 0; i < t->n_settings; i++) {
		free(t->settings[i].name);
		free(t->settings[i].value);
	}
	for (size_t i = 0; i < t->n_findings; i++)
		free(t->findings[i].text);
	free(t->entries);
	free(t->settings);
	free(t->findings);
	free(t->lines);
	free(t);
}

const struct crontab_finding *crontab_first_error(const struct crontab *t)
{
	for (size_t i = 0; i < t->n_findings; i++)
		if (t->findings[i].level == CRONTAB_ERROR)
			return &t->findings[i];
	return NULL;
}

static bool applies(const struct crontab_setting *v, const struct crontab_entry *e)
{
	return v->replaced >= e->settings;
}

const char *crontab_get(const struct crontab *t, const struct crontab_entry *e, const char *name)
{
	for (size_t i = e->settings; i-- > 0;)
		if (strcmp(t->settings[i].name, name) == 0)
			return t->settings[i].value;
	return NULL;
}

void crontab_env(const struct crontab *t, const struct crontab_entry *e, struct strv *out)
{
	for (size_t i = 0; i < e->settings; i++) {
		const struct crontab_setting *v = &t->settings[i];

		if (applies(v, e) && strcmp(v->name, "LOGNAME") != 0)
			strv_take(out, xprintf("%s=%s", v->name, v->value));
	}
}

/* The text from one position to another, with one blank between words. */
static char *words(const struct reader *r, size_t from, size_t to)
{
	AUTO_DONE(buf) out = {};
	bool gap = false;

	buf_str(&out, "");
	for (size_t i = from; i < to; i++) {
		char c = (char)r->data[i];

		if (c == ' ' || c == '\t') {
			gap = out.len > 0;
			continue;
		}
		if (gap)
			buf_char(&out, ' ');
		gap = false;
		buf_char(&out, c ? c : '?');
	}
	return buf_steal(&out);
}

/* '%' ends the command unless a backslash precedes it. Returns the text after it, or NULL. */
static const char *split_command(const char *text, bool debian, struct buf *out)
{
	bool escaped = false;

	buf_str(out, "");
	for (; *text; text++) {
		if (escaped && (*text == '%' || (debian && *text == '\\')))
			out->len--;
		else if (!escaped && *text == '%')
			break;
		escaped = !escaped && *text == '\\';
		buf_char(out, *text);
	}
	buf_str(out, "");
	return *text && text[1] ? text + 1 : NULL;
}

/* Each '%' is a newline; a final newline is added unless the last character before a '\' is one. */
static char *expand_input(const char *s)
{
	AUTO_DONE(buf) out = {};
	bool escaped = false, open = false;

	for (; *s; s++) {
		char c = *s == '%' && !escaped ? '\n' : *s;

		if (escaped && c != '%')
			buf_char(&out, '\\');
		escaped = c == '\\';
		if (!escaped) {
			buf_char(&out, c);
			open = c != '\n';
		}
	}
	if (escaped)
		buf_char(&out, '\\');
	if (open)
		buf_char(&out, '\n');
	return buf_steal(&out);
}

static void lint_command(struct reader *r, const struct crontab_entry *e, size_t pos)
{
	size_t len = strlen(e->text), percent = 0;

	for (bool escaped = false; percent < len; percent++) {
		if (!escaped && e->text[percent] == '%')
			break;
		escaped = !escaped && e->text[percent] == '\\';
	}
	if (percent < len)
		reader_report(r, CODE_PERCENT, pos + percent,
			"'%%' ends the command and the rest becomes its input; write '\\%%' for a percent sign");
	if (len == 0)
		reader_report(r, CODE_EMPTY, pos, "there is no command");
	if (len > 0 && e->text[len - 1] == '\r')
		reader_report(r, CODE_RETURN, pos + len - 1,
			"the line ends with a carriage return, which becomes part of the command; remove it with 'sed s/\\r$//'");
}

/* The rest of the line. */
static bool read_command(struct reader *r, struct crontab_entry *e)
{
	bool cronie = r->o->mode == CRONTAB_CRONIE;
	size_t pos = r->pos, len = reader_span(r, "\n"), max = cronie ? CRONTAB_CRONIE_MAX : CRONTAB_COMMAND_MAX;
	AUTO_DONE(buf) command = {};
	const char *input;

	/* only after a NUL byte in the fields: otherwise the missing newline was reported before */
	if (pos + len >= r->len)
		return reader_report(r, CODE_COMMAND, pos, "the table ends in the command");
	if (len > max)
		return reader_report(r, CODE_TOO_LONG, pos, "the command has %zu bytes; the limit is %zu", len, max);
	e->text = xstrndup((const char *)r->data + pos, len);
	input = split_command(e->text, !cronie, &command);
	e->command = buf_steal(&command);
	e->input = input ? expand_input(input) : NULL;
	lint_command(r, e, pos);
	if (pos + len < r->len && r->data[pos + len] == '\0')
		reader_report(r, CODE_NUL, pos + len, "a NUL byte ends the command; cron reads the rest as another line");
	return true;
}

static bool user_exists(const struct reader *r, const char *name)
{
	if (!*name || strpbrk(name, "\n\r:/"))
		return false;
	return !r->o->user_exists || r->o->user_exists(name, r->o->arg);
}

/* The user of a system table. Debian: exactly one blank after it is dropped. */
static bool read_user(struct reader *r, struct crontab_entry *e)
{
	bool cronie = r->o->mode == CRONTAB_CRONIE;
	size_t pos = r->pos, len = reader_span(r, cronie ? " \t\n" : " \t"), shown = reader_span(r, " \t\n");
	AUTO_TEXT name = xstrndup((const char *)r->data + pos, len);

	if (pos + len >= r->len || (cronie && r->data[pos + len] == '\n'))
		return reader_report(r, CODE_COMMAND, pos, "a user and a command belong here");
	if (!user_exists(r, name)) {
		name[shown < len ? shown : len] = '\0';
		return reader_report(r, CODE_USERNAME, pos, "there is no user '%.80s'%s", name,
			shown < len ? ", or no command after the user" : "");
	}
	e->user = STEAL(name);
	r->pos += len + 1;
	if (cronie)
		reader_skip_blanks(r);
	return true;
}

/* cronie: "-n" before the command */
static bool read_options(struct reader *r, struct crontab_entry *e)
{
	while (reader_peek(r) == '-') {
		size_t pos = r->pos;

		if (reader_next(r) != 'n' || e->mail_on_error || (reader_next(r) != ' ' && reader_peek(r) != '\t'))
			return reader_report(r, CODE_OPTION, pos, "the only option before a command is '-n', once");
		e->mail_on_error = true;
		reader_report(r, CODE_ON_ERROR, pos, "cronie mails the output of each failed run; jobsched mails the first failure and the "
			"recovery");
		reader_skip_blanks(r);
	}
	return true;
}

static bool read_time(struct reader *r, struct crontab_entry *e)
{
	size_t from = r->pos, to;
	struct cron c;

	if (reader_peek(r) == '@' ? !fields_read_nickname(r, e) : !fields_read(r, &e->time))
		return false;
	for (to = r->pos; to > from && (r->data[to - 1] == ' ' || r->data[to - 1] == '\t'); to--)
		;
	e->schedule = words(r, from, to);
	e->never = !e->reboot && !crontab_time_cron(&e->time, &c);
	reader_skip_blanks(r);
	fields_lint(r, e, from);
	return true;
}

static bool read_cronie_prefix(struct reader *r, struct crontab_entry *e)
{
	if (r->o->mode != CRONTAB_CRONIE || reader_peek(r) != '-')
		return true;
	if (!r->o->system && !r->o->no_logging)
		return reader_report(r, CODE_OPTION, r->pos, "only root may switch off the log with '-'");
	e->quiet = true;
	reader_report(r, CODE_UNLOGGED, r->pos, "cronie does not log this entry; jobsched records each run");
	reader_next(r);
	return true;
}

/* The number at the beginning, as strtol() reads it; a value without one is 0. False: it is out of range. */
static bool read_delay(const char *value, int64_t *ret)
{
	const char *p = value + strspn(value, " \t\v\f\r");
	bool negative = *p == '-';
	int64_t n = 0;

	p += *p == '-' || *p == '+';
	for (; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (*p - '0');
		if (n > DELAY_MAX)
			return false;
	}
	if (negative && n > 0)
		return false;
	*ret = n;
	return true;
}

/* cronie: CRON_TZ and RANDOM_DELAY apply to the entry. An empty CRON_TZ is the zone of the machine. */
static void apply_settings(struct reader *r, struct crontab_entry *e)
{
	const char *delay;

	e->settings = r->table->n_settings;
	if (r->o->mode != CRONTAB_CRONIE)
		return;
	e->zone = crontab_get(r->table, e, "CRON_TZ");
	if (e->zone && !*e->zone)
		e->zone = NULL;
	delay = crontab_get(r->table, e, "RANDOM_DELAY");
	if (!delay)
		return;
	if (!read_delay(delay, &e->delay_minutes))
		reader_report(r, CODE_BAD_DELAY, r->pos, "RANDOM_DELAY '%.40s' is not between 0 and %d minutes: there is no delay",
			delay, DELAY_MAX);
	else if (!*delay || delay[strspn(delay, "0123456789")])
		reader_report(r, CODE_BAD_DELAY, r->pos, "RANDOM_DELAY '%.40s' is not a number: cron reads it as %d minutes", delay,
			(int)e->delay_minutes);
}

static bool read_entry(struct reader *r, struct crontab_entry *e)
{
	bool cronie = r->o->mode == CRONTAB_CRONIE;

	*e = (struct crontab_entry){ .line = r->line, .column = r->pos - r->line_start + 1 };
	if (!read_cronie_prefix(r, e) || !read_time(r, e))
		return false;
	if (cronie && reader_peek(r) == '\n')
		return reader_report(r, CODE_COMMAND, r->pos, "a command belongs here");
	if (reader_peek(r) == '*' && (cronie || !r->o->system))
		return reader_report(r, CODE_COMMAND, r->pos, "a command does not begin with '*'; a user table has five time fields");
	if (r->o->system && !read_user(r, e))
		return false;
	apply_settings(r, e);
	return (!cronie || read_options(r, e)) && read_command(r, e);
}

static void set_line(struct reader *r, size_t line, enum crontab_line kind)
{
	if (line <= r->table->n_lines && r->table->lines[line - 1] < kind)
		r->table->lines[line - 1] = (uint8_t)kind;
}

static void add_entry(struct reader *r)
{
	struct crontab *t = r->table;
	struct crontab_entry e;
	size_t line = r->line;

	if (!read_entry(r, &e)) {
		crontab_entry_done(&e);
		set_line(r, line, CRONTAB_LINE_REFUSED);
		if (r->line == line)
			reader_skip_line(r);
		return;
	}
	r->pos += strlen(e.text);
	reader_next(r);
	set_line(r, line, CRONTAB_LINE_ENTRY);
	t->entries = xgrow(t->entries, t->n_entries, sizeof *t->entries);
	t->entries[t->n_entries++] = e;
}

/* The last line without its newline. In a table that is refused, its meaning is shown anyway. */
static void read_last_line(struct reader *r)
{
	bool cronie = r->o->mode == CRONTAB_CRONIE;
	AUTO_TEXT text = xprintf("%.*s\n", (int)(r->len - r->line_start), (const char *)r->data + r->line_start);
	struct reader last = *r;

	reader_report(r, CODE_NEWLINE, r->len, "the last line does not end with a newline; cron ignores %s; append a newline",
		cronie ? "the line" : "the whole table");
	set_line(r, r->line, CRONTAB_LINE_REFUSED);
	last.data = (const unsigned char *)text;
	last.len = strlen(text);
	last.pos = r->pos - r->line_start;
	last.line_start = 0;
	if (!cronie && last.pos < last.len && !setting_read(&last))
		add_entry(&last);
}

/* The line at the cursor, which is neither blank nor a comment. False: the table ends in it. */
static bool read_line(struct reader *r)
{
	size_t line = r->line;

	if (r->pos + reader_span(r, "\n") >= r->len) {
		read_last_line(r);
		return false;
	}
	if (setting_read(r))
		set_line(r, line, CRONTAB_LINE_SETTING);
	else
		add_entry(r);
	if (r->line > DAEMON_LINES_MAX + 1) {
		reader_report(r, CODE_LINES, r->pos, "a table has at most %d lines; cron ignores the whole table",
			CRONTAB_LINES_MAX);
		r->table->accepted = false;
		return false;
	}
	return true;
}

static void count_lines(const char *data, size_t len, struct crontab *t)
{
	for (size_t i = 0; i < len; i++)
		t->n_lines += data[i] == '\n';
	t->n_lines += len > 0 && data[len - 1] != '\n';
	t->lines = xcalloc(t->n_lines + 1, 1);
	t->too_long = t->n_lines > CRONTAB_LINES_MAX;
}

void crontab_parse(const char *data, size_t len, const struct crontab_options *o, struct crontab **ret)
{
	AUTO(crontab) *t = xcalloc(1, sizeof *t);
	struct reader r = { .data = (const unsigned char *)data, .len = len, .line = 1, .o = o, .table = t };

	t->mode = o->mode;
	t->system = o->system;
	t->accepted = true;
	count_lines(data, len, t);
	while (reader_skip_comments(&r) && read_line(&r))
		;
	for (size_t i = 0; i < t->n_lines; i++)
		t->count[t->lines[i]]++;
	*ret = STEAL(t);
}

bool crontab_recognise(const char *text)
{
	const struct crontab_options o = { .mode = CRONTAB_CRONIE };
	AUTO_TEXT whole = xprintf("%s\n", text);
	AUTO(crontab) *t = NULL;

	if (text_starts(text, "#!"))
		return false;
	/* cronie's rules, because they ignore no text */
	crontab_parse(whole, strlen(whole), &o, &t);
	return t->n_entries > 0 && !crontab_first_error(t);
}
