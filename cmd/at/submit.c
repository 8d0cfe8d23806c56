/* SPDX-License-Identifier: Apache-2.0 */
/* Adds an at job: reads the commands and sends them to the daemon as a job with one slot. */
#include "at/at_command.h"
#include "at/at_script.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/job/job.h"
#include "core/time/at_time.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "jobctl/api.h"
#include "jobctl/local_zone.h"
#include "jobctl/member.h"
#include "wire/spec_json.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_DEFAULT 'a'
#define QUEUE_BATCH 'b'
#define COMMANDS_MAX (8 * 1024 * 1024)
#define RUNNER "jobsched-at-run"
#define NICE_MAX 19

/* ---- commands ---- */

/* Prompts on a terminal, as Debian's at does. */
static int read_terminal(struct buf *out, int64_t when)
{
	time_t t = when;
	char date[64], *line = NULL;
	size_t cap = 0;
	ssize_t n;
	struct tm tm;

	strftime(date, sizeof(date), AT_TIME_FORMAT, localtime_r(&t, &tm));
	fprintf(stderr, "at %s\nat> ", date);
	while (out->len < COMMANDS_MAX && (n = getline(&line, &cap, stdin)) > 0) {
		buf_add(out, line, (size_t)n);
		fputs("at> ", stderr);
	}
	free(line);
	fputs("<EOT>\n", stderr);
	return out->len >= COMMANDS_MAX ? -EFBIG : 0;
}

static int read_commands(const struct at_command *c, struct buf *out)
{
	int r;

	if (c->input && !freopen(c->input, "r", stdin)) {
		fprintf(stderr, "Cannot open input file %.500s: %s\n", c->input, strerror(errno));
		return EXIT_FAILURE;
	}
	r = isatty(STDIN_FILENO) ? read_terminal(out, c->time)
				 : io_read_all(STDIN_FILENO, out, COMMANDS_MAX);
	if (r == -EFBIG)
		return at_fail(c, "the commands have more than %d bytes; run a script file instead",
			COMMANDS_MAX);
	return r < 0 ? at_fail(c, "Input error: %s", strerror(-r)) : EXIT_SUCCESS;
}

/* ---- mail ---- */

/* The login name, $LOGNAME or the account name, as Debian's at chooses it. */
static char *find_recipient(const struct at_command *c)
{
	const struct passwd *p;
	const char *name = c->mail_to;

	if (name)
		return getpwnam(name) ? xstrdup(name) : NULL;
	name = getlogin();
	if (!name)
		name = getenv("LOGNAME");
	if (name && *name && getpwnam(name))
		return xstrdup(name);
	p = getpwuid(getuid());
	return p ? xstrdup(p->pw_name) : NULL;
}

/* The program that runs the commands and mails their output, also in a build directory. */
static char *find_runner(void)
{
	static const char installed[] = JOBSCHED_LIBEXECDIR "/" RUNNER;
	char own[4096];
	ssize_t n;
	char *slash;

	if (access(installed, X_OK) == 0)
		return xstrdup(installed);
	n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	if (n <= 0)
		return xstrdup(installed);
	own[n] = '\0';
	slash = strrchr(own, '/');
	return slash ? xprintf("%.*s/" RUNNER, (int)(slash - own), own) : xstrdup(installed);
}

/* ---- the job ---- */

static bool is_batch(char queue)
{
	return queue == QUEUE_BATCH || isupper((unsigned char)queue);
}

static void set_command(const struct at_command *c, struct job_spec *s, const char *mail_to)
{
	static const char *const modes[] = {
		[AT_MAIL_OUTPUT] = "output",
		[AT_MAIL_ALWAYS] = "always",
		[AT_MAIL_NEVER] = "never",
	};

	strv_take(&s->command, find_runner());
	strv_add(&s->command, modes[c->mail]);
	strv_add(&s->command, mail_to);
}

/* Jobs start at whole minutes. A time that has come is not written: the job runs now. */
static int64_t start_minute(const struct at_command *c)
{
	return c->time - c->time % 60;
}

static void set_time(const struct at_command *c, struct job_spec *s)
{
	char text[RFC3339_MAX];

	if (start_minute(c) * USEC_SEC > c->ctl.now)
		strv_add(&s->schedule, rfc3339_format(start_minute(c) * USEC_SEC, text));
}

static void fill_spec(const struct at_command *c, const char *mail_to, struct job_spec *s)
{
	int64_t nice = (tolower((unsigned char)c->queue) - 'a') * 2;

	set_command(c, s, mail_to);
	set_time(c, s);
	s->tz = local_zone();
	s->cwd = xstrdup("/"); /* the script changes to the directory of the caller */
	s->sandbox = xstrdup("compat");
	s->nice = nice < NICE_MAX ? nice : NICE_MAX;
	s->leftovers = LEFTOVERS_KEEP;
	s->on_lost = LOST_FAIL; /* commands that began are not repeated */
	if (is_batch(c->queue))
		strv_add(&s->when, AT_LOAD_LIMIT);
	strv_add(&s->tags, AT_TAG);
	strv_take(&s->tags, xprintf(AT_TAG_QUEUE "=%c", c->queue));
	strv_take(&s->tags, xprintf(AT_TAG_TIME "=%" PRId64, start_minute(c)));
}

static int send_job(struct at_command *c, const struct job_spec *s)
{
	json_auto_t *body = spec_json_write(s), *job = NULL;
	time_t t = c->time;
	char date[64];
	struct err e = {};
	struct tm tm;

	c->ctl.yes = true;
	if (!api_call(&c->ctl, "POST", "/v1/jobs", body, &job, &e))
		return at_fail(c, "%s", e.msg);
	strftime(date, sizeof(date), AT_TIME_FORMAT, localtime_r(&t, &tm));
	fprintf(stderr, "job %" PRId64 " at %s\n", member_int(job, "id"), date);
	return EXIT_SUCCESS;
}

static int write_script(const struct at_command *c, const struct buf *commands, const char *mail_to,
	struct job_spec *s)
{
	static const int modes[] = {
		[AT_MAIL_OUTPUT] = 0, [AT_MAIL_ALWAYS] = 1, [AT_MAIL_NEVER] = -1};
	AUTO_TEXT cwd = getcwd(NULL, 0);
	AUTO_DONE(buf) script = {};
	mode_t mask = umask(0);

	umask(mask);
	if (!cwd)
		return at_fail(c, "Cannot get current working directory: %s", strerror(errno));
	at_script_write(&(struct at_script){.uid = getuid(),
				.gid = getgid(),
				.mail_to = mail_to,
				.mail = modes[c->mail],
				.umask = mask,
				.env = environ,
				.cwd = cwd,
				.commands = commands->data ? commands->data : "",
				.len = commands->len},
		&script);
	s->umask = mask & 0777;
	s->stdin_data.len = script.len;
	s->stdin_data.data = buf_steal(&script);
	return EXIT_SUCCESS;
}

/* ---- the time ---- */

static int parse_time(struct at_command *c)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_TEXT name = local_zone();
	struct at_time_context at = {.zone = &zone_utc, .now = c->ctl.now / USEC_SEC};
	struct err e = {};

	if (c->n > 0 && c->time) {
		fputs("Cannot give time twice.\n", stderr);
		return EXIT_FAILURE;
	}
	if (c->n == 0)
		return EXIT_SUCCESS;
	if (!zone_cache_get(zones, name, &at.zone, &e))
		return at_fail(c, "%s", e.msg);
	switch (at_time_parse(&at, c->words, c->n, &c->time, &e)) {
	case AT_TIME_OK:
		return EXIT_SUCCESS;
	case AT_TIME_PAST:
		return at_fail(c, "refusing to create job destined in the past");
	case AT_TIME_GARBLED:
		ctl_say("%s", e.msg);
	}
	return EXIT_SUCCESS; /* the message about a missing time follows */
}

static char final_queue(const struct at_command *c)
{
	if (!c->batch)
		return c->queue ? c->queue : QUEUE_DEFAULT;
	return c->queue ? (char)toupper((unsigned char)c->queue) : QUEUE_BATCH;
}

static int prepare(struct at_command *c)
{
	char date[64];
	struct tm tm;
	time_t t;
	int r = parse_time(c);

	if (r != EXIT_SUCCESS)
		return r;
	if (!c->time && c->batch && c->n == 0)
		c->time = c->ctl.now / USEC_SEC;
	if (!c->time) {
		fputs("Garbled time\n", stderr);
		return EXIT_FAILURE;
	}
	t = c->time;
	if (c->verify && strftime(date, sizeof(date), AT_TIME_FORMAT, localtime_r(&t, &tm)))
		fprintf(stderr, "%s\n\n", date);
	c->queue = final_queue(c);
	if (!c->batch)
		fputs("warning: commands will be executed using /bin/sh\n", stderr);
	return EXIT_SUCCESS;
}

int submit_job(struct at_command *c)
{
	AUTO_DONE(job_spec) spec;
	AUTO_DONE(buf) commands = {};
	AUTO_TEXT mail_to = NULL;
	int r;

	job_spec_init(&spec);
	r = prepare(c);
	if (r != EXIT_SUCCESS)
		return r;
	mail_to = find_recipient(c);
	if (!mail_to && c->mail_to)
		return at_fail(c, "Cannot find username %s", c->mail_to);
	if (!mail_to)
		return at_fail(c, "Cannot find username to mail output to");
	r = read_commands(c, &commands);
	if (r == EXIT_SUCCESS)
		r = write_script(c, &commands, mail_to, &spec);
	if (r != EXIT_SUCCESS)
		return r;
	fill_spec(c, mail_to, &spec);
	return send_job(c, &spec);
}
