/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the mail of a run's output. Header values cannot break their line. */
#include "daemon/notify/cron_mail.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/job/job.h"
#include <string.h>

#define HEADER_MAX 900 /* bytes; RFC 5322 allows lines of 998 */

/* Bytes are passed on unchanged, as cron does; control characters become '?'. */
static void put_header(struct buf *out, const char *text)
{
	for (size_t n = 0; text[n] && n < HEADER_MAX; n++)
		buf_char(out, (unsigned char)text[n] < ' ' || text[n] == 0x7f ? '?' : text[n]);
}

static const char *env_get(const struct job_spec *s, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < s->env.n; i++)
		if (strncmp(s->env.v[i], name, len) == 0 && s->env.v[i][len] == '=')
			return s->env.v[i] + len + 1;
	return NULL;
}

static void put_line(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%s: ", name);
	put_header(out, value);
	buf_char(out, '\n');
}

/* A line of anacrontab: see table_job.c for its arguments. */
static const char *anacron_id(const struct job_spec *s)
{
	for (size_t i = 0; i < s->tags.n; i++)
		if (s->origin && text_starts(s->tags.v[i], "anacron="))
			return s->tags.v[i] + strlen("anacron=");
	return NULL;
}

static void put_command(struct buf *out, const struct job_spec *s)
{
	if (s->script)
		put_header(out, s->script);
	else if (s->origin && s->command.n >= 3)
		put_header(out, s->command.v[2]); /* SHELL -c COMMAND */
	for (size_t i = 0; !s->script && !s->origin && i < s->command.n; i++) {
		if (i)
			buf_char(out, ' ');
		put_header(out, s->command.v[i]);
	}
}

static void put_subject(struct buf *out, const struct cron_mail *m)
{
	const char *id = anacron_id(m->spec);

	buf_str(out, "Subject: ");
	if (id) {
		buf_printf(out, "Anacron job '%s' on %s\n", id, m->host);
		return;
	}
	buf_printf(out, "Cron <%s@%.*s> ", m->owner, (int)strcspn(m->host, "."), m->host);
	put_command(out, m->spec);
	buf_char(out, '\n');
}

static void put_environment(struct buf *out, const struct cron_mail *m)
{
	const struct job_spec *s = m->spec;
	AUTO_TEXT logname = xprintf("LOGNAME=%s", m->owner);
	const char *const presets[] = {"SHELL=/bin/sh", "PATH=/usr/bin:/bin"};

	for (size_t i = 0; i < s->env.n; i++) {
		AUTO_TEXT pair = xprintf("<%.800s>", s->env.v[i]);

		put_line(out, "X-Cron-Env", pair);
	}
	for (size_t i = 0; i < ELEMENTS(presets); i++) {
		AUTO_TEXT name = xstrndup(presets[i], strcspn(presets[i], "="));

		if (!env_get(s, name))
			buf_printf(out, "X-Cron-Env: <%s>\n", presets[i]);
	}
	buf_printf(out, "X-Cron-Env: <%s>\n", logname);
}

void cron_mail_write(const struct cron_mail *m, struct buf *out)
{
	const char *type = env_get(m->spec, "CONTENT_TYPE"), *encoding = env_get(m->spec, "CONTENT_TRANSFER_ENCODING");

	buf_str(out, "From: root (Cron Daemon)\n");
	put_line(out, "To", m->to);
	put_subject(out, m);
	buf_str(out, "MIME-Version: 1.0\n");
	put_line(out, "Content-Type", type ? type : "text/plain; charset=UTF-8");
	put_line(out, "Content-Transfer-Encoding", encoding ? encoding : "8bit");
	buf_str(out, "Auto-Submitted: auto-generated\n");
	if (m->spec->origin)
		put_environment(out, m);
	buf_char(out, '\n');
	buf_add(out, m->output ? m->output : "", m->output_len);
}
