/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl env-diff'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/verbs/verbs.h"
#include "wire/json_value.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *value_in(const struct strv *env, const char *name, size_t len)
{
	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=')
			return env->v[i] + len + 1;
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_own_env(struct strv *ret)
{
	for (char **v = environ; *v; v++)
		if (strchr(*v, '='))
			strv_add(ret, *v);
}

/* ---- the comparison as JSON: the text is written from it ---- */

/* A value that is only known at the start of a run is null. */
static json_t *value_json(const char *name, const char *value, bool reveal)
{
	AUTO_TEXT pair = xprintf("%s=%s", name, value);
	AUTO_TEXT shown = job_env_masked(pair, reveal || text_starts(name, "JOBSCHED_"));

	return job_env_known(pair) ? json_value_text(shown + strlen(name) + 1) : json_null();
}

static void compare_env(const struct strv *job, const struct strv *here, bool reveal, json_t *ret)
{
	json_t *only_job = json_object(), *only_here = json_object(), *different = json_object();

	for (size_t i = 0; i < job->n; i++) {
		size_t len = strcspn(job->v[i], "=");
		AUTO_TEXT name = xstrndup(job->v[i], len);
		const char *own = value_in(here, name, len), *its = job->v[i] + len + 1;

		if (!own)
			json_object_set_new(only_job, name, value_json(name, its, reveal));
		else if (strcmp(own, its) != 0)
			json_object_set_new(different, name,
				json_pack("{s:o, s:o}", "job", value_json(name, its, reveal),
					"here", value_json(name, own, reveal)));
	}
	for (size_t i = 0; i < here->n; i++) {
		size_t len = strcspn(here->v[i], "=");
		AUTO_TEXT name = xstrndup(here->v[i], len);

		if (!value_in(job, name, len) && text_utf8_valid(name, len))
			json_object_set_new(only_here, name,
				value_json(name, here->v[i] + len + 1, reveal));
	}
	json_object_set_new(ret, "only_job", only_job);
	json_object_set_new(ret, "only_here", only_here);
	json_object_set_new(ret, "different", different);
}

static void compare_place(const struct job_spec *s, const struct strv *env, json_t *ret)
{
	AUTO_TEXT here = getcwd(NULL, 0);
	const char *dir = s->cwd ? s->cwd : value_in(env, "HOME", strlen("HOME"));
	mode_t mask = umask(0);
	AUTO_TEXT own = xprintf("%03o", (unsigned)mask);
	AUTO_TEXT its = xprintf("%03o", (unsigned)s->umask);

	umask(mask);
	json_object_set_new(ret, "cwd",
		json_pack("{s:o, s:o}", "job", json_value_text(dir), "here",
			json_value_text(here)));
	json_object_set_new(ret, "umask", json_pack("{s:s, s:s}", "job", its, "here", own));
}

/* The file that a PATH finds; NULL: none. Caller frees. */
static char *look_up(const char *path, const char *word)
{
	while (path && *path) {
		size_t len = strcspn(path, ":");
		AUTO_TEXT file = xprintf("%.*s/%s", (int)len, path, word);

		if (len && access(file, X_OK) == 0)
			return STEAL(file);
		path += len + (path[len] == ':');
	}
	return NULL;
}

static void compare_command(const struct job_spec *s, const struct strv *job,
	const struct strv *here, json_t *ret)
{
	AUTO_TEXT its = NULL;
	AUTO_TEXT own = NULL;

	if (s->command.n == 0 || strchr(s->command.v[0], '/'))
		return;
	its = look_up(value_in(job, "PATH", 4), s->command.v[0]);
	own = look_up(value_in(here, "PATH", 4), s->command.v[0]);
	json_object_set_new(ret, "command",
		json_pack("{s:o, s:o, s:o}", "word", json_value_text(s->command.v[0]), "job",
			json_value_text(its), "here", json_value_text(own)));
}

/* ---- text ---- */

static void put_value(const json_t *value, struct buf *out)
{
	const char *text = json_string_value(value);

	if (text)
		text_escape(out, text, strlen(text));
	else
		buf_str(out, "<set at the start of a run>");
}

static void put_pairs(const json_t *o, char sign, struct buf *out)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)o, name, value) {
		buf_printf(out, "%c ", sign);
		text_escape(out, name, strlen(name));
		buf_char(out, '=');
		put_value(value, out);
		buf_char(out, '\n');
	}
}

/* The directories of one PATH that the other one lacks. */
static void put_directories(const char *path, const char *other, char sign, struct buf *out)
{
	AUTO_TEXT all = xprintf(":%s:", other ? other : "");

	while (path && *path) {
		size_t len = strcspn(path, ":");
		AUTO_TEXT dir = xprintf(":%.*s:", (int)len, path);

		if (!strstr(all, dir)) {
			buf_printf(out, "  %c ", sign);
			text_escape(out, path, len);
			buf_char(out, '\n');
		}
		path += len + (path[len] == ':');
	}
}

static void put_different(const json_t *o, struct buf *out)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)o, name, value) {
		const json_t *its = json_object_get(value, "job"), *own = json_object_get(value, "here");

		if (strcmp(name, "PATH") == 0) {
			buf_str(out, "~ PATH\n");
			put_directories(json_string_value(its), json_string_value(own), '+', out);
			put_directories(json_string_value(own), json_string_value(its), '-', out);
			continue;
		}
		buf_str(out, "~ ");
		text_escape(out, name, strlen(name));
		buf_str(out, ": job '");
		put_value(its, out);
		buf_str(out, "', here '");
		put_value(own, out);
		buf_str(out, "'\n");
	}
}

static void put_pair_of(const json_t *o, const char *name, struct buf *out)
{
	const char *its = member_text(json_object_get(o, name), "job"),
		   *own = member_text(json_object_get(o, name), "here");

	if (text_equal(its, own))
		return;
	buf_printf(out, "~ %s: job '", name);
	text_escape(out, its ? its : "", strlen(its ? its : ""));
	buf_str(out, "', here '");
	text_escape(out, own ? own : "", strlen(own ? own : ""));
	buf_str(out, "'\n");
}

static void put_command(const json_t *o, struct buf *out)
{
	const char *word = member_text(o, "word"), *its = member_text(o, "job"),
		   *own = member_text(o, "here");

	if (!word || text_equal(its, own))
		return;
	buf_str(out, "the command '");
	text_escape(out, word, strlen(word));
	buf_str(out, "' is ");
	if (its)
		text_escape(out, its, strlen(its));
	else
		buf_str(out, "not found");
	buf_str(out, " with the PATH of the job, and ");
	if (own)
		text_escape(out, own, strlen(own));
	else
		buf_str(out, "not found");
	buf_str(out, " here\n");
}

int verb_env_diff(struct ctl *c, const struct args *a)
{
	AUTO_DONE(job_spec) spec;
	AUTO_DONE(strv) job_env = {};
	AUTO_DONE(strv) here = {};
	AUTO_DONE(buf) out = {};
	json_auto_t *job = NULL, *o = json_object();
	char *const *words;
	struct ref ref;
	struct err e = {};

	args_operands(a, &words);
	job_spec_init(&spec);
	if (!ref_parse(words[0], &ref, &e) || !api_job(c, &ref, &job, &e) ||
		!job_object_read_spec(job, &spec, &e))
		return ctl_fail(&e);
	job_env_list(job, NULL, &spec, &job_env);
	read_own_env(&here);
	if (job_env.n)
		qsort(job_env.v, job_env.n, sizeof *job_env.v, compare_names);
	if (here.n)
		qsort(here.v, here.n, sizeof *here.v, compare_names);
	compare_env(&job_env, &here, args_has(a, "reveal"), o);
	compare_place(&spec, &job_env, o);
	compare_command(&spec, &job_env, &here, o);
	if (!render_is_text(c))
		return render_object(c, o);
	put_pairs(json_object_get(o, "only_job"), '+', &out);
	put_pairs(json_object_get(o, "only_here"), '-', &out);
	put_different(json_object_get(o, "different"), &out);
	put_pair_of(o, "cwd", &out);
	put_pair_of(o, "umask", &out);
	put_command(json_object_get(o, "command"), &out);
	return render_text(&out);
}
