/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, prints and removes at jobs. */
#include "at/at_command.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/member.h"
#include "jobctl/spec/job_object.h"
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define JOBS_PATH "/v1/jobs?tag=at%3Djob&state=active,paused,suspended"
#define QUEUE_RUNNING '='

/* Numbers of jobs. */
struct numbers {
	int64_t *v; /* owned */
	size_t n;
};

static void numbers_done(struct numbers *l)
{
	free(l->v);
}

static void numbers_add(struct numbers *l, int64_t n)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = n;
}

static bool numbers_have(const struct numbers *l, int64_t n)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i] == n)
			return true;
	return false;
}

static const char *tag_of(const json_t *job, const char *key)
{
	const char *value = member_text(json_object_get(job, "tags"), key);

	return value ? value : "";
}

static bool is_at_job(const json_t *job)
{
	const char *state = member_text(job, "state");

	return strcmp(tag_of(job, "at"), "job") == 0 && tag_of(job, AT_TAG_QUEUE)[0] && state &&
	       (strcmp(state, "active") == 0 || strcmp(state, "paused") == 0 ||
		       strcmp(state, "suspended") == 0);
}

/* ---- list ---- */

static bool on_run(const json_t *run, void *arg)
{
	numbers_add(arg, member_int(run, "job"));
	return true;
}

static bool read_running(struct at_command *c, struct numbers *ret, struct err *e)
{
	return api_pages(&c->ctl, &(struct pages){.path = "/v1/runs?state=claimed,running",
					  .member = "runs",
					  .row = on_run,
					  .arg = ret},
		e);
}

struct listing {
	const struct at_command *command;
	const struct numbers *chosen, *running;
	struct buf out;
};

/* The time of the tag is the one that at(1) printed; a user can change tags, so it is checked. */
static int64_t time_of(const json_t *job)
{
	int64_t t;

	if (text_parse_int(tag_of(job, AT_TAG_TIME), 0, USEC_LAST / USEC_SEC, &t))
		return t;
	return member_time(job, "next_at") / USEC_SEC;
}

/* The format is that of -o, which the user wrote. */
static size_t format_time(char *out, size_t max, const char *format, time_t t)
{
	struct tm tm;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return strftime(out, max, format, localtime_r(&t, &tm));
#pragma GCC diagnostic pop
}

static bool on_job(const json_t *job, void *arg)
{
	struct listing *l = arg;
	const struct at_command *c = l->command;
	int64_t id = member_int(job, "id");
	char queue = numbers_have(l->running, id) ? QUEUE_RUNNING : tag_of(job, AT_TAG_QUEUE)[0];
	const char *owner = member_text(job, "owner");
	char date[512];
	size_t n;

	if (!is_at_job(job) || (l->chosen->n && !numbers_have(l->chosen, id)) ||
		(c->queue && c->queue != queue))
		return true;
	n = format_time(date, sizeof(date), c->format, time_of(job));
	buf_printf(&l->out, "%" PRId64 "\t", id);
	text_escape(&l->out, date, n);
	buf_printf(&l->out, " %c", queue);
	if (owner) {
		buf_char(&l->out, ' ');
		text_escape(&l->out, owner, strlen(owner));
	}
	buf_char(&l->out, '\n');
	return true;
}

/* Root sees the jobs of all users. An administrator of jobsched sees only own jobs here. */
static char *jobs_path(void)
{
	const struct passwd *p = getpwuid(getuid());
	AUTO_DONE(buf) path = {};

	buf_str(&path, JOBS_PATH);
	if (getuid() != 0 && p)
		api_query_add(&path, "owner", p->pw_name);
	return buf_steal(&path);
}

int list_jobs(struct at_command *c)
{
	AUTO_DONE(numbers) chosen = {};
	AUTO_DONE(numbers) running = {};
	struct listing l = {.command = c, .chosen = &chosen, .running = &running};
	AUTO_TEXT path = jobs_path();
	struct err e = {};
	int64_t n;
	int r;

	for (size_t i = 0; i < c->n && !c->queue; i++) {
		if (!text_parse_int(c->words[i], 0, INT64_MAX, &n))
			return at_fail(c, "invalid job number");
		numbers_add(&chosen, n);
	}
	if (!read_running(c, &running, &e) ||
		!api_pages(&c->ctl,
			&(struct pages){.path = path, .member = "jobs", .row = on_job, .arg = &l}, &e)) {
		buf_done(&l.out);
		return at_fail(c, "%s", e.msg);
	}
	r = io_write_all(STDOUT_FILENO, l.out.data, l.out.len);
	buf_done(&l.out);
	return r < 0 ? at_fail(c, "Output error: %s", strerror(-r)) : EXIT_SUCCESS;
}

/* ---- one job ---- */

/* False: a message was printed. */
static bool find_job(struct at_command *c, const char *word, json_t **ret)
{
	AUTO_TEXT path = xprintf("/v1/jobs/%.20s", word);
	json_auto_t *job = NULL;
	struct err e = {};

	if (strlen(word) > 18 || !api_call(&c->ctl, "GET", path, NULL, &job, &e)) {
		if (e.kind != ERR_NOT_FOUND && e.kind != ERR_NONE)
			at_fail(c, "%s", e.msg);
		else
			fprintf(stderr, "Cannot find jobid %s\n", word);
		return false;
	}
	if (!is_at_job(job)) {
		fprintf(stderr, "Cannot find jobid %s\n", word);
		return false;
	}
	*ret = json_incref(job);
	return true;
}

static bool check_numbers(const struct at_command *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (!*c->words[i] || c->words[i][strspn(c->words[i], "0123456789")]) {
			ctl_say("at: unknown jobid: %s", c->words[i]);
			return false;
		}
	return true;
}

/* The commands of a running job continue, as with Debian's at. */
static bool remove_job(struct at_command *c, const char *word)
{
	json_auto_t *job = NULL, *runs = NULL, *answer = NULL;
	AUTO_TEXT path = NULL;
	struct err e = {};

	if (!find_job(c, word, &job))
		return false;
	if (api_runs(&c->ctl, member_int(job, "id"), "claimed,running", 1, &runs, NULL) &&
		json_array_size(runs) > 0)
		fputs("Warning: deleting running job\n", stderr);
	path = xprintf("/v1/jobs/%" PRId64, member_int(job, "id"));
	return api_call(&c->ctl, "DELETE", path, NULL, &answer, &e) ||
	       at_fail(c, "%s", e.msg) == EXIT_SUCCESS;
}

int remove_jobs(struct at_command *c)
{
	int code = EXIT_SUCCESS;

	if (!check_numbers(c))
		return EXIT_FAILURE;
	for (size_t i = 0; i < c->n; i++)
		if (!remove_job(c, c->words[i]))
			code = EXIT_FAILURE;
	return code;
}

static bool print_job(struct at_command *c, const char *word)
{
	json_auto_t *job = NULL;
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	job_spec_init(&spec);
	if (!find_job(c, word, &job))
		return false;
	if (!job_object_read_spec(job, &spec, &e))
		return at_fail(c, "%s", e.msg) == EXIT_SUCCESS;
	return io_write_all(STDOUT_FILENO, spec.stdin_data.data, spec.stdin_data.len) == 0;
}

int print_jobs(struct at_command *c)
{
	int code = EXIT_SUCCESS;

	if (!check_numbers(c))
		return EXIT_FAILURE;
	for (size_t i = 0; i < c->n; i++)
		if (!print_job(c, c->words[i]))
			code = EXIT_FAILURE;
	return code;
}
