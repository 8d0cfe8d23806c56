/* SPDX-License-Identifier: Apache-2.0 */
/* Job states, memory management, and checks that involve several fields. */
#include "core/job/job.h"
#include "core/job/call.h"
#include "base/err.h"
#include "core/job/job_fields.h"
#include "core/job/limits.h"
#include "core/job/params.h"
#include <string.h>

static const char *const state_names[JOB_STATE_MAX] = {
	[JOB_ACTIVE] = "active",
	[JOB_PAUSED] = "paused",
	[JOB_SUSPENDED] = "suspended",
	[JOB_FINISHED] = "finished",
	[JOB_CANCELLED] = "cancelled",
	[JOB_REMOVED] = "removed",
};

const char *job_state_name(enum job_state s)
{
	return s < JOB_STATE_MAX ? state_names[s] : "unknown";
}

bool job_state_parse(const char *name, enum job_state *ret)
{
	for (int s = 0; s < JOB_STATE_MAX; s++)
		if (strcmp(name, state_names[s]) == 0) {
			*ret = (enum job_state)s;
			return true;
		}
	return false;
}

void job_spec_init(struct job_spec *s)
{
	*s = (struct job_spec){};
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];

		if (f->type >= FIELD_INT)
			*(int64_t *)((char *)s + f->offset) = f->preset;
	}
}

void job_spec_done(struct job_spec *s)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		void *at = (char *)s + job_fields[i].offset;

		switch (job_fields[i].type) {
		case FIELD_TEXT:
			free(*(char **)at);
			break;
		case FIELD_LIST:
		case FIELD_MAP:
			strv_done(at);
			break;
		case FIELD_BLOB:
			blob_done(at);
			break;
		default:
			break;
		}
	}
	*s = (struct job_spec){};
}

bool job_command_fits(const struct strv *command, struct err *e)
{
	size_t sum = 0;

	for (size_t i = 0; i < command->n; i++) {
		size_t len = strlen(command->v[i]);

		if (len > JOB_WORD_MAX)
			return err_field(e, "command", "word %zu of the command has %zu bytes, the kernel takes %d", i + 1,
				len, JOB_WORD_MAX);
		sum += len + 1;
	}
	if (sum > JOB_COMMAND_MAX)
		return err_field(e, "command", "the command has %zu bytes in all, more than %d; give it a file to read", sum,
			JOB_COMMAND_MAX);
	return true;
}

bool job_script_program(const char *script, char **ret_program, char **ret_arg)
{
	const char *line = script + 2, *end = script + strcspn(script, "\n"), *arg;
	size_t path = 0;

	if (!text_starts(script, "#!"))
		return false;
	while (end > line && strchr(" \t\r", end[-1]))
		end--;
	while (line < end && strchr(" \t", *line))
		line++;
	while (line + path < end && !strchr(" \t", line[path]))
		path++;
	arg = line + path + strspn(line + path, " \t");
	if (path == 0 || (arg >= end && path == strlen("/bin/sh") && text_starts(line, "/bin/sh")))
		return false;
	*ret_program = xstrndup(line, path);
	*ret_arg = arg < end ? xstrndup(arg, (size_t)(end - arg)) : NULL;
	return true;
}

/* Secrets use the descriptors from 3 on, which must not reach the descriptor of the script. */
static bool check_script_secrets(const struct job_spec *s, struct err *e)
{
	AUTO_TEXT program = NULL;
	AUTO_TEXT arg = NULL;

	if (!s->script || s->secrets.n <= JOB_SCRIPT_FD - 3 || !job_script_program(s->script, &program, &arg))
		return true;
	return err_field(e, "secrets", "a script with a '#!' line can have at most %d secrets", JOB_SCRIPT_FD - 3);
}

/* The slots of a job that runs after others are those of its parents. */
static bool check_after_schedule(const struct job_spec *s, struct err *e)
{
	for (size_t i = 0; s->after.n > 0 && i < s->schedule.n; i++)
		if (strcmp(s->schedule.v[i], "manual") != 0)
			return err_field(e, "after", "a job with 'after' has no schedule of its own; its slots are those of the jobs it runs after");
	return true;
}

bool job_spec_check(const struct job_spec *s, struct err *e)
{
	AUTO_DONE(strv) values = {};

	if (s->command.n > 0 && s->script)
		return err_field(e, "script", "a job has either 'command' or 'script', not both");
	if (!call_check(s, e))
		return false;
	if (s->command.n == 0 && !s->script && call_kind_of(s) == CALL_NONE)
		return err_field(e, "command", "a job needs a command; write it after '--'");
	if (s->command.n > 0 && !s->command.v[0][0])
		return err_field(e, "command", "the first word of the command is empty");
	if (s->script && !s->script[strspn(s->script, " \t\n")])
		return err_field(e, "script", "the script is empty");
	if (call_kind_of(s) != CALL_NONE && (s->gate || s->checkpoint))
		return err_field(e, s->gate ? "gate" : "checkpoint", "a call has no gate or checkpoint");
	if (call_kind_of(s) != CALL_NONE && call_kind_of(s) != CALL_HTTP && s->results)
		return err_field(e, "results", "of the calls only those with 'http' have results");
	if (s->state_size && !s->checkpoint)
		return err_field(e, "state_size", "'state_size' is about the directory of a job with 'checkpoint'; add 'checkpoint'");
	if (!check_after_schedule(s, e))
		return false;
	if (!check_script_secrets(s, e))
		return false;
	if (s->artifact && !s->sha256)
		return err_field(e, "sha256", "an artifact needs its SHA-256, so that nothing else can be run in its place");
	if (s->sha256 && !s->artifact)
		return err_field(e, "artifact", "'sha256' is the sum of an artifact, and there is none");
	if (!limits_check(s, 0, e) || !job_command_fits(&s->command, e) || !params_check(s, &s->params, e))
		return false;
	return s->params.n == 0 || params_of_run(s, NULL, &values, e);
}

/*
 * Variables that the dynamic loader, the C library, shells and interpreters evaluate before the
 * command runs; '*' ends a prefix.
 */
static const char *const loaded[] = {"LD_*", "MALLOC_*", "GLIBC_TUNABLES", "GCONV_PATH", "GETCONF_DIR", "HOSTALIASES",
	"LOCALDOMAIN", "LOCPATH", "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR", "BASH_ENV", "BASH_FUNC_*",
	"ENV", "IFS", "SHELLOPTS", "PYTHON*", "PERL5*", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS"};

static bool is_loaded(const char *pair)
{
	size_t len = strcspn(pair, "=");

	for (size_t i = 0; i < ELEMENTS(loaded); i++) {
		size_t n = strcspn(loaded[i], "*");

		if (strncmp(pair, loaded[i], n) == 0 && (loaded[i][n] || len == n))
			return true;
	}
	return false;
}

static bool pair_present(const struct strv *list, const char *pair)
{
	for (size_t i = 0; list && i < list->n; i++)
		if (strcmp(list->v[i], pair) == 0)
			return true;
	return false;
}

bool job_env_check_foreign(const struct strv *env, const struct strv *had, struct err *e)
{
	for (size_t i = 0; i < env->n; i++)
		if (is_loaded(env->v[i]) && !pair_present(had, env->v[i]))
			return err_field(e, "env", "'%.*s' may not be set in a job of another user",
				(int)strcspn(env->v[i], "="), env->v[i]);
	return true;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	free(j->owner);
	free(j->name);
	free(j->reason);
	free(j->queue);
	free(j->spec);
	free(j->pause.by_name);
	free(j->pause.reason);
	free(j->waiting.reason);
	free(j->waiting_code);
	free(j->waiting_message);
	free(j);
}

int64_t job_segment(uint64_t seed)
{
	seed = (seed ^ seed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	seed = (seed ^ seed >> 27) * UINT64_C(0x94D049BB133111EB);
	return (int64_t)((seed ^ seed >> 31) % SEGMENTS);
}
