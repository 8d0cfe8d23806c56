/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the log of a cron daemon from the journal or a syslog file. */
#include "jobctl/cron/cron_log.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "jobctl/cron/process.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOG_MAX (256 << 20)

static const char *const files[] = {"/var/log/cron.log", "/var/log/cron", "/var/log/syslog", "/var/log/messages"};

void cron_starts_done(struct cron_starts *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].user);
		free(l->v[i].command);
	}
	free(l->v);
	*l = (struct cron_starts){};
}

static void start_add(struct cron_starts *l, const struct cron_start *s)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = *s;
}

bool cron_log_message(const char *m, size_t len, struct cron_start *ret)
{
	static const char mark[] = ") CMD (";
	const char *close = memmem(m, len, mark, strlen(mark)), *command;
	size_t n;

	if (len < 2 || m[0] != '(' || !close || m[len - 1] != ')' || memchr(m, ' ', (size_t)(close - m)))
		return false;
	command = close + strlen(mark);
	n = (size_t)(m + len - 1 - command);
	if (command > m + len - 1)
		return false;
	while (n > 0 && (*command == ' ' || *command == '\t')) {
		command++;
		n--;
	}
	while (n > 0 && (command[n - 1] == ' ' || command[n - 1] == '\t'))
		n--;
	ret->user = xstrndup(m + 1, (size_t)(close - m) - 1);
	ret->command = xstrndup(command, n);
	return true;
}

/* ---- syslog files ---- */

/* "Nov 18 07:17:01 "; the year is the newest one that is not in the future. */
static bool old_time(const char *line, usec_t now, usec_t *ret, const char **rest)
{
	time_t seconds = (time_t)(now / USEC_SEC);
	const char *end;
	struct tm today, tm;

	localtime_r(&seconds, &today);
	for (int year = today.tm_year; year >= today.tm_year - 1; year--) {
		tm = (struct tm){.tm_year = year, .tm_isdst = -1};
		end = strptime(line, "%b %d %H:%M:%S ", &tm);
		if (!end)
			return false;
		tm.tm_year = year;
		tm.tm_isdst = -1;
		*ret = (usec_t)mktime(&tm) * USEC_SEC;
		*rest = end;
		if (*ret <= now + USEC_DAY)
			return true;
	}
	return true;
}

static bool new_time(const char *line, usec_t *ret, const char **rest)
{
	size_t len = strcspn(line, " ");
	AUTO_TEXT word = xstrndup(line, len);

	*rest = line + len + (line[len] == ' ');
	return rfc3339_parse(word, ret, NULL);
}

/* The program that wrote the line is cron: "CRON[12]:", "crond[12]:", "/usr/sbin/cron[12]:". */
static bool is_cron(const char *tag, size_t len)
{
	static const char *const names[] = {"CRON", "CROND", "cron", "crond"};
	size_t name = strcspn(tag, "[:");
	const char *slash;

	if (name > len)
		return false;
	slash = memrchr(tag, '/', name);
	if (slash) {
		name -= (size_t)(slash + 1 - tag);
		tag = slash + 1;
	}
	for (size_t i = 0; i < ELEMENTS(names); i++)
		if (strlen(names[i]) == name && strncmp(names[i], tag, name) == 0)
			return true;
	return false;
}

bool cron_log_line(const char *text, size_t len, usec_t now, struct cron_start *ret)
{
	AUTO_TEXT line = xstrndup(text, len);
	const char *at, *colon;
	struct cron_start s = {};

	if (!new_time(line, &s.at, &at) && !old_time(line, now, &s.at, &at))
		return false;
	at += strcspn(at, " "); /* the host */
	at += strspn(at, " ");
	colon = strstr(at, ": ");
	if (!colon || !is_cron(at, (size_t)(colon - at)) || !cron_log_message(colon + 2, strlen(colon + 2), &s))
		return false;
	*ret = s;
	return true;
}

static void lines_read(const struct buf *text, usec_t since, usec_t now, struct cron_starts *ret)
{
	const char *at = text->data, *end = at ? at + text->len : NULL;

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((nl ? nl : end) - at);
		struct cron_start s;

		if (cron_log_line(at, len, now, &s)) {
			if (s.at >= since) {
				start_add(ret, &s);
			} else {
				free(s.user);
				free(s.command);
			}
		}
		at += len + 1;
	}
}

static bool file_read(const char *path, usec_t since, usec_t now, struct cron_starts *ret, struct err *e)
{
	AUTO_DONE(buf) text = {};
	int r = io_read_file(path, &text, LOG_MAX);

	if (r < 0)
		return err_errno(e, -r, "could not read '%s'", path);
	lines_read(&text, since, now, ret);
	return true;
}

/* ---- the journal ---- */

static void journal_line(const char *line, size_t len, struct cron_starts *ret)
{
	json_auto_t *o = json_loadb(line, len, 0, NULL);
	const char *message = json_string_value(json_object_get(o, "MESSAGE"));
	const char *at = json_string_value(json_object_get(o, "__REALTIME_TIMESTAMP"));
	struct cron_start s = {};

	if (message && at && text_parse_int(at, 0, INT64_MAX, &s.at) && cron_log_message(message, strlen(message), &s))
		start_add(ret, &s);
}

static bool journal_read(usec_t since, struct cron_starts *ret, struct err *e)
{
	AUTO_TEXT from = xprintf("--since=@%" PRId64, since / USEC_SEC);
	const char *const argv[] = {"journalctl", "--quiet", "--no-pager", "--output=json", "--output-fields=MESSAGE", from,
		"SYSLOG_IDENTIFIER=CRON", "SYSLOG_IDENTIFIER=CROND", "SYSLOG_IDENTIFIER=cron", "SYSLOG_IDENTIFIER=crond", NULL};
	AUTO_DONE(buf) text = {};
	int status = process_run(argv, &text, LOG_MAX, e);
	const char *at = text.data, *end = at ? at + text.len : NULL;

	if (status != 0)
		return status < 0 ? false : err_set(e, ERR_NOT_FOUND, "journalctl found no journal");
	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((nl ? nl : end) - at);

		journal_line(at, len, ret);
		at += len + 1;
	}
	return true;
}

bool cron_log_read(const char *file, usec_t since, usec_t now, struct cron_starts *ret, struct err *e)
{
	struct err why = {};

	if (file)
		return file_read(file, since, now, ret, e);
	if (journal_read(since, ret, &why) && ret->n > 0)
		return true;
	for (size_t i = 0; i < ELEMENTS(files) && ret->n == 0; i++)
		(void)file_read(files[i], since, now, ret, NULL);
	if (ret->n > 0 || !why.kind)
		return true;
	return err_set(e, ERR_NOT_FOUND, "cron's log was not found: there are no entries in the journal, and none of /var/log/cron.log, "
		"/var/log/cron and /var/log/syslog has any; '--log FILE' names another file");
}
