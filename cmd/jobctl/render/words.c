/* SPDX-License-Identifier: Apache-2.0 */
/* Formats times, durations, sizes, results for people. */
#include "jobctl/render/words.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/duration.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "jobctl/member.h"
#include "jobctl/spec/shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RELATIVE_MAX (60 * USEC_DAY) /* a date is shown for times further away */

static const struct {
	usec_t usec;
	const char *name;
} units[] = {{USEC_DAY, "d"}, {USEC_HOUR, "h"}, {USEC_MIN, "m"}, {USEC_SEC, "s"}};

/* The largest unit and the next smaller one: 2d3h. */
static char *two_units(usec_t d, char out[WORDS_MAX])
{
	for (size_t i = 0; i < ELEMENTS(units); i++) {
		usec_t n = d / units[i].usec;
		usec_t rest = i + 1 < ELEMENTS(units) ? d % units[i].usec / units[i + 1].usec : 0;

		if (n == 0)
			continue;
		if (rest)
			snprintf(out, WORDS_MAX, "%" PRId64 "%s%" PRId64 "%s", n, units[i].name,
				rest, units[i + 1].name);
		else
			snprintf(out, WORDS_MAX, "%" PRId64 "%s", n, units[i].name);
		return out;
	}
	return strcpy(out, "0s");
}

static time_t whole_seconds(usec_t t)
{
	return (time_t)(t / USEC_SEC - (t % USEC_SEC < 0));
}

char *words_instant(usec_t t, char out[WORDS_MAX])
{
	time_t seconds = whole_seconds(t);
	struct tm tm = {};
	long offset;
	size_t len;

	localtime_r(&seconds, &tm);
	len = strftime(out, WORDS_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	offset = tm.tm_gmtoff < 0 ? -tm.tm_gmtoff : tm.tm_gmtoff;
	if (offset == 0 && tm.tm_zone && strcmp(tm.tm_zone, "UTC") == 0)
		snprintf(out + len, WORDS_MAX - len, "Z");
	else
		snprintf(out + len, WORDS_MAX - len, "%c%02ld:%02ld", tm.tm_gmtoff < 0 ? '-' : '+',
			offset / 3600, offset / 60 % 60);
	return out;
}

/* The length of the time in UTC that the text begins with, as the daemon writes it; 0: none. */
static size_t instant_at(const char *s)
{
	static const char form[] = "0000-00-00T00:00:00";
	size_t n;

	for (n = 0; form[n]; n++)
		if (form[n] == '0' ? s[n] < '0' || s[n] > '9' : s[n] != form[n])
			return 0;
	if (s[n] == '.')
		n += 1 + strspn(s + n + 1, "0123456789");
	return s[n] == 'Z' ? n + 1 : 0;
}

void words_localize(const char *text, struct buf *out)
{
	for (const char *begin = text; *text;) {
		size_t n = text > begin && text[-1] == '\'' ? 0 : instant_at(text);
		AUTO_TEXT instant = n ? xstrndup(text, n) : NULL;
		char words[WORDS_MAX];
		usec_t t;

		if (n && rfc3339_parse(instant, &t, NULL)) {
			buf_str(out, words_instant(t, words));
			text += n;
		} else {
			buf_char(out, *text++);
		}
	}
}

char *words_relative(usec_t t, usec_t now, char out[WORDS_MAX])
{
	usec_t away = t > now ? t - now : now - t;
	char span[WORDS_MAX], date[WORDS_MAX];

	if (away > RELATIVE_MAX) {
		snprintf(out, WORDS_MAX, "%.10s", words_instant(t, date));
	} else if (away < USEC_SEC) {
		strcpy(out, "now");
	} else if (t > now) {
		/* Rounded, so that a job added with --in 5s is due "in 5s" and not "in 4s". */
		snprintf(out, WORDS_MAX, "in %.40s", two_units(away + USEC_SEC / 2, span));
	} else {
		snprintf(out, WORDS_MAX, "%.40s ago", two_units(away, span));
	}
	return out;
}

char *words_duration(usec_t d, char out[WORDS_MAX])
{
	if (d < 0)
		d = 0;
	if (d < USEC_SEC)
		snprintf(out, WORDS_MAX, "%" PRId64 "ms", d / USEC_MSEC);
	else if (d < 10 * USEC_SEC)
		snprintf(out, WORDS_MAX, "%" PRId64 ".%" PRId64 "s", d / USEC_SEC,
			d % USEC_SEC / (USEC_SEC / 10));
	else
		two_units(d, out);
	return out;
}

char *words_size(int64_t bytes, char out[WORDS_MAX])
{
	static const char *const names[] = {"KiB", "MiB", "GiB", "TiB"};
	double n = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(out, WORDS_MAX, "%" PRId64 " B", bytes);
		return out;
	}
	for (n /= 1024; n >= 1024 && i + 1 < ELEMENTS(names); i++)
		n /= 1024;
	snprintf(out, WORDS_MAX, "%.1f %s", n, names[i]);
	return out;
}

/* The error of the newest attempt; NULL: none, or the object has no attempts. */
static const char *last_error(const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts");
	size_t n = json_array_size(attempts);

	return n ? json_string_value(json_object_get(json_array_get(attempts, n - 1), "error"))
		 : NULL;
}

bool words_waits_for_retry(const json_t *run)
{
	const char *state = json_string_value(json_object_get(run, "state"));

	return state && strcmp(state, "queued") == 0 &&
	       json_integer_value(json_object_get(run, "attempt")) > 0;
}

void words_progress(const json_t *run, struct buf *out)
{
	const json_t *p = json_object_get(run, "progress"), *percent = json_object_get(p, "percent");
	const char *text = member_text(p, "text");

	if (json_is_integer(percent))
		buf_printf(out, "%d%%", (int)json_integer_value(percent));
	if (text)
		buf_printf(out, "%s%s", json_is_integer(percent) ? " " : "", text);
}

void words_result(const json_t *run, struct buf *out)
{
	const json_t *code = json_object_get(run, "exit_code"),
		     *sig = json_object_get(run, "signal");
	const char *reason = json_string_value(json_object_get(run, "reason")), *error;
	const char *state = json_string_value(json_object_get(run, "state"));

	if (json_integer_value(sig) > 0) {
		const char *name = sigabbrev_np((int)json_integer_value(sig));

		if (name)
			buf_printf(out, "killed by SIG%s", name);
		else
			buf_printf(out, "killed by signal %d", (int)json_integer_value(sig));
	} else if (json_is_integer(code) && json_integer_value(code) != 0) {
		buf_printf(out, "exit code %d", (int)json_integer_value(code));
	}
	error = words_waits_for_retry(run) ? NULL : last_error(run);
	if (!error && out->len == 0 && state && strcmp(state, "failed") == 0 && reason &&
		strcmp(reason, "retries used up") == 0)
		buf_str(out, "not started");
	if (error) {
		buf_printf(out, "%s%s", out->len ? ", " : "", error);
		return;
	}
	if (!reason || !*reason)
		return;
	buf_str(out, out->len ? ", " : "");
	for (; *reason; reason++)
		buf_char(out, *reason == '_' ? ' ' : *reason);
}

bool words_is_held(const json_t *job)
{
	const char *waits = member_text(json_object_get(job, "waiting_for"), "code");

	return text_equal(member_text(job, "state"), "paused") || text_equal(waits, "paused") ||
	       text_equal(waits, "frozen");
}

/* 15m for PT15M. Days of ISO 8601 follow the local clock, so they are not converted to hours. */
static void put_interval_words(const char *text, const char *before, struct buf *out)
{
	char words[RFC3339_MAX];
	usec_t d;

	if (text_starts(text, "PT") && duration_parse(text, &d, NULL))
		buf_printf(out, "%s%s", before, duration_format(d, words));
	else
		buf_str(out, text);
}

/* The start in "PT15M since …" is left out: the user did not type it. */
static void put_schedule_words(const char *text, struct buf *out)
{
	static const char follows[] = "after-finish ";
	const char *since = strstr(text, " since ");
	AUTO_TEXT head = since ? xstrndup(text, (size_t)(since - text)) : xstrdup(text);

	if (strcmp(head, "@reboot") == 0) {
		buf_str(out, "on boot");
	} else if (text_starts(head, follows)) {
		buf_str(out, follows);
		put_interval_words(head + strlen(follows), "", out);
	} else {
		put_interval_words(head, "every ", out);
	}
}

void words_schedule(const json_t *job, struct buf *out)
{
	const json_t *list = json_object_get(job, "schedule"), *text;
	size_t i;

	json_array_foreach(list, i, text) {
		buf_str(out, i ? "; " : "");
		put_schedule_words(json_string_value(text), out);
	}
}

/* The API encodes values that are not UTF-8 as base64, in a member with the suffix _b64. */
static void put_decoded_word(const json_t *word, bool coded, bool quote, struct buf *out)
{
	AUTO_DONE(buf) bytes = {};
	const char *text = json_string_value(word);

	if (!text)
		return;
	if (coded) {
		if (!buf_base64_decode(text, strlen(text), &bytes))
			return;
		text = bytes.data ? bytes.data : "";
	}
	if (quote)
		shell_quote(out, text);
	else
		buf_str(out, text);
}

void words_command(const json_t *job, struct buf *out)
{
	const json_t *script = json_object_get(job, "script"),
		     *coded = json_object_get(job, "script_b64");
	const json_t *words = json_object_get(job, "command"), *word;
	bool b64 = json_is_array(json_object_get(job, "command_b64"));
	size_t i;

	if (json_is_string(json_object_get(job, "http"))) {
		buf_printf(out, "%s %s", member_text(job, "http"), member_text(job, "url") ? member_text(job, "url") : "");
		return;
	}
	if (json_is_string(json_object_get(job, "kafka"))) {
		buf_printf(out, "kafka %s", member_text(job, "kafka"));
		return;
	}
	if (json_is_string(json_object_get(job, "lambda"))) {
		buf_printf(out, "lambda %s", member_text(job, "lambda"));
		return;
	}
	if (json_is_string(script) || json_is_string(coded)) {
		put_decoded_word(json_is_string(script) ? script : coded, !json_is_string(script),
			false, out);
		return;
	}
	if (b64)
		words = json_object_get(job, "command_b64");
	json_array_foreach(words, i, word) {
		if (i)
			buf_char(out, ' ');
		put_decoded_word(word, b64, true, out);
	}
}
