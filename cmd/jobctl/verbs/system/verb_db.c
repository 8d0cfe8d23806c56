/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs of 'jobctl db' except restore. */
#include "jobctl/verbs/system/verb_db.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/file/paths.h"
#include "base/text.h"
#include "jobctl/args.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/progress.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/verbs.h"
#include "wire/http_client.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool verb_db_is_system(const struct ctl *c)
{
	AUTO_DONE(paths) system = {};

	return paths_find(&(struct paths_options){.instance = c->instance}, &system, NULL) &&
	       text_equal(c->socket, system.socket);
}

int verb_db_confirm(const struct args *a, const char *verb, const char *question)
{
	if (args_has(a, "yes"))
		return -1;
	if (!ctl_can_ask()) {
		ctl_say("jobctl: nothing was done: without a terminal 'jobctl %s' needs --yes",
			verb);
		return EXIT_USAGE;
	}
	if (ctl_ask(question))
		return -1;
	ctl_say("nothing was done");
	return EXIT_FAILURE;
}

/* A request without a time limit. Its progress line has the time only. */
static bool call_long(struct ctl *c, const char *method, const char *path, const json_t *body,
	const char *what, json_t **ret, struct err *e)
{
	AUTO(progress) *progress = NULL;

	if (!connect_daemon(c, e))
		return false;
	progress = progress_new(what);
	return http_client_call(c->client, method, path, body, -1, ret, e);
}

/* ---- prune ---- */

static bool prune_body(const struct args *a, json_t **ret, struct err *e)
{
	static const char *const durations[][2] = {{"older-than", "older_than"},
		{"dead-older-than", "dead_older_than"}};
	json_auto_t *o = json_object();
	int64_t n;

	for (size_t i = 0; i < ELEMENTS(durations); i++)
		if (args_has(a, durations[i][0]))
			json_object_set_new(o, durations[i][1],
				json_string(args_last(a, durations[i][0])));
	if (args_has(a, "keep-runs")) {
		if (!text_parse_int(args_last(a, "keep-runs"), 0, INT64_MAX, &n))
			return err_set(e, ERR_INVALID, "--keep-runs '%s' is not a whole number",
				args_last(a, "keep-runs"));
		json_object_set_new(o, "keep_runs", json_integer(n));
	}
	*ret = json_incref(o);
	return true;
}

int verb_db_prune(struct ctl *c, const struct args *a)
{
	json_auto_t *body = NULL, *answer = NULL;
	struct err e = {};
	int stop;

	if (!prune_body(a, &body, &e))
		return ctl_fail(&e);
	stop = verb_db_confirm(a, "db prune", "delete old history now?");
	if (stop >= 0)
		return stop;
	if (!call_long(c, "POST", "/v1/db/prune", body, "deleting old history", &answer, &e))
		return ctl_fail(&e);
	if (render_wants_json(c)) {
		render_object(c, answer);
		return EXIT_SUCCESS;
	}
	printf("deleted %" PRId64 " runs, %" PRId64 " jobs, %" PRId64 " events, %" PRId64
	       " output files with %" PRId64 " bytes\n",
		member_int(answer, "runs"), member_int(answer, "jobs"),
		member_int(answer, "events"), member_int(answer, "outputs"),
		member_int(answer, "output_bytes"));
	return EXIT_SUCCESS;
}

/* ---- backup ---- */

struct receiving {
	struct ctl *c;
	struct progress *progress; /* borrowed */
	int64_t total;             /* 0: not known yet */
	int fd;
	int64_t bytes;
	int error;
};

static bool write_chunk(const char *data, size_t len, void *arg)
{
	struct receiving *r = arg;
	const char *whole = r->total ? NULL : http_client_header(r->c->client, "X-Jobsched-Bytes");

	if (whole)
		(void)text_parse_int(whole, 0, INT64_MAX, &r->total);
	r->error = -io_write_all(r->fd, data, len);
	r->bytes += (int64_t)len;
	progress_set(r->progress, r->bytes, r->total);
	return r->error == 0;
}

static bool receive_backup(struct ctl *c, const char *temp, int64_t *ret_bytes, struct err *e)
{
	AUTO(progress) *progress = progress_new("writing a backup");
	struct receiving r = {
		.c = c,
		.progress = progress,
		.fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
	AUTO_FD fd = r.fd;
	const char *whole;
	int64_t bytes;

	if (fd < 0)
		return err_errno(e, errno, "could not create '%s'", temp);
	if (!http_client_stream(c->client, "/v1/db/backup", -1, write_chunk, &r, e))
		return false;
	if (r.error == 0 && fsync(fd) < 0)
		r.error = errno;
	if (r.error)
		return err_errno(e, r.error, "could not write '%s'", temp);
	whole = http_client_header(c->client, "X-Jobsched-Bytes");
	if (!whole || !text_parse_int(whole, 0, INT64_MAX, &bytes) || bytes != r.bytes)
		return err_set(e, ERR_UNREACHABLE,
			"the backup was interrupted after %" PRId64 " bytes", r.bytes);
	*ret_bytes = r.bytes;
	return true;
}

int verb_db_backup(struct ctl *c, const struct args *a)
{
	char *const *words;
	AUTO_TEXT temp = NULL;
	struct err e = {};
	int64_t bytes = 0;

	args_operands(a, &words);
	if (!args_has(a, "force") && access(words[0], F_OK) == 0) {
		err_set(&e, ERR_CONFLICT,
			"'%s' already exists; choose another name, or overwrite it with --force",
			words[0]);
		return ctl_fail(&e);
	}
	temp = xprintf("%s.part", words[0]);
	unlink(temp);
	if (!connect_daemon(c, &e) || !receive_backup(c, temp, &bytes, &e) ||
		(rename(temp, words[0]) < 0 &&
			!err_errno(&e, errno, "could not rename the backup to '%s'", words[0]))) {
		unlink(temp);
		return ctl_fail(&e);
	}
	ctl_say("wrote a backup of %" PRId64
		" bytes to '%s'; 'jobctl %s db restore %s' restores it",
		bytes, words[0], verb_db_is_system(c) ? "--system" : "--user", words[0]);
	return EXIT_SUCCESS;
}

/* ---- check ---- */

int verb_db_check(struct ctl *c, const struct args *a)
{
	json_auto_t *answer = NULL;
	const json_t *problem;
	struct err e = {};
	size_t i;

	(void)a;
	if (!call_long(c, "GET", "/v1/db/check", NULL, "checking the store", &answer, &e))
		return ctl_fail(&e);
	if (render_wants_json(c))
		render_object(c, answer);
	else if (json_is_true(json_object_get(answer, "ok")))
		puts("the store is intact");
	json_array_foreach(json_object_get(answer, "unsafe_settings"), i, problem)
		ctl_say("jobctl: '%s' is off: a crash of the database's machine can lose acknowledged work",
			json_string_value(problem));
	json_array_foreach(json_object_get(answer, "problems"), i, problem)
		ctl_say("jobctl: %s", json_string_value(problem));
	if (json_is_true(json_object_get(answer, "ok")))
		return EXIT_SUCCESS;
	ctl_say("the store is damaged; stop the daemon and restore a backup with 'jobctl db restore FILE'");
	return EXIT_FAILURE;
}
