/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a crontab as lines of JSON. */
#include "jobctl/crontab/crontab_json.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "jobctl/render/render.h"
#include <jansson.h>
#include <string.h>

/* The allowed range of the second byte of a UTF-8 sequence, and its length; 0: not a first byte. */
static size_t sequence_length(unsigned char first, unsigned char *low, unsigned char *high)
{
	*low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	*high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
	return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* Replaces each maximal part that is not UTF-8 by U+FFFD. */
static void put_utf8(const char *s, struct buf *out)
{
	while (*s) {
		unsigned char low, high;
		size_t len = sequence_length((unsigned char)*s, &low, &high), n = 1;

		while (n < len && (unsigned char)s[n] >= low && (unsigned char)s[n] <= high) {
			low = 0x80;
			high = 0xbf;
			n++;
		}
		if (n == len)
			buf_add(out, s, n);
		else
			buf_str(out, "\xef\xbf\xbd");
		s += n;
	}
	buf_str(out, "");
}

static json_t *utf8_string(const char *s)
{
	AUTO_DONE(buf) text = {};

	put_utf8(s, &text);
	return json_string(text.data);
}

/* The text, and its bytes in base64 if they are not UTF-8. */
static void set_bytes(json_t *o, const char *key, const char *s)
{
	AUTO_TEXT key64 = xprintf("%s_b64", key);
	AUTO_DONE(buf) encoded = {};

	json_object_set_new(o, key, s ? utf8_string(s) : json_null());
	if (!s || text_utf8_valid(s, strlen(s)))
		return;
	buf_base64(&encoded, s, strlen(s));
	json_object_set_new(o, key64, json_string(encoded.data));
}

static json_t *value_set(uint64_t bits)
{
	json_t *a = json_array();

	for (int i = 0; i < 64; i++)
		if (bits >> i & 1)
			json_array_append_new(a, json_integer(i));
	return a;
}

static json_t *env_object(const struct crontab *t, const struct crontab_entry *e)
{
	AUTO_DONE(strv) env = {};
	json_t *o = json_object();

	crontab_env(t, e, &env);
	for (size_t i = 0; i < env.n; i++) {
		AUTO_DONE(buf) name = {};
		char *eq = strchr(env.v[i], '=');

		*eq = '\0';
		put_utf8(env.v[i], &name);
		json_object_set_new(o, name.data, utf8_string(eq + 1));
	}
	return o;
}

static void set_time(json_t *o, const struct crontab_time *t)
{
	json_object_set_new(o, "minute", value_set(t->minute));
	json_object_set_new(o, "hour", value_set(t->hour));
	json_object_set_new(o, "dom", value_set(t->dom));
	json_object_set_new(o, "month", value_set(t->month));
	json_object_set_new(o, "dow", value_set(t->dow));
	json_object_set_new(o, "dom_star", json_boolean(t->dom_star));
	json_object_set_new(o, "dow_star", json_boolean(t->dow_star));
}

static json_t *entry_object(const struct crontab *t, const struct crontab_entry *e)
{
	json_t *o = json_pack("{s:I}", "line", (json_int_t)e->line);
	AUTO_DONE(buf) schedule = {};

	json_object_set_new(o, "user", e->user ? utf8_string(e->user) : json_null());
	set_bytes(o, "command", e->command);
	set_bytes(o, "stdin", e->input);
	json_object_set_new(o, "env", env_object(t, e));
	if (e->reboot)
		json_object_set_new(o, "reboot", json_true());
	else
		set_time(o, &e->time);
	crontab_schedule(e, &schedule);
	json_object_set_new(o, "schedule", utf8_string(schedule.data));
	if (e->zone)
		json_object_set_new(o, "zone", utf8_string(e->zone));
	if (e->delay_minutes)
		json_object_set_new(o, "random_delay", json_integer(e->delay_minutes));
	return o;
}

static json_t *finding_object(const struct crontab_finding *f)
{
	json_t *o = json_pack("{s:I, s:I}", "line", (json_int_t)f->line, "column", (json_int_t)f->column);

	if (f->level != CRONTAB_ERROR)
		json_object_set_new(o, "finding", json_string(f->code));
	else if (strcmp(f->code, "no-final-newline") == 0 || strcmp(f->code, "too-many-lines") == 0)
		json_object_set_new(o, "file_error", json_string(f->cron_text));
	else
		json_object_set_new(o, "error", json_string(f->cron_text));
	json_object_set_new(o, "message", utf8_string(f->text));
	return o;
}

static void put_line(json_t *o /* moved */, struct buf *out)
{
	render_json(o, JSON_COMPACT, out);
	buf_char(out, '\n');
	json_decref(o);
}

void crontab_json_write(const struct crontab *t, struct buf *out)
{
	size_t f = 0;

	for (size_t i = 0; i < t->n_entries; i++) {
		for (; f < t->n_findings && t->findings[f].line <= t->entries[i].line; f++)
			put_line(finding_object(&t->findings[f]), out);
		put_line(entry_object(t, &t->entries[i]), out);
	}
	for (; f < t->n_findings; f++)
		put_line(finding_object(&t->findings[f]), out);
}
