/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what can be asked of a job: JSON, command line, 'show' and help all read it. */
#include "base/err.h"
#include "core/job.h"
#include <string.h>

bool job_name_check(const char *name, struct err *e)
{
	size_t len = strlen(name);

	if (len == 0 || len > 128 || strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
						  "0123456789._-") != len)
		return err_field(e, "name", "a name has 1 to 128 letters, digits, '.', '_' and '-'");
	if (strspn(name, "0123456789") == len)
		return err_field(e, "name", "the name '%s' is all digits, which would mean job number %s", name,
			name);
	return true;
}

static bool variable_name_valid(const char *s, size_t len)
{
	if (len == 0 || (s[0] >= '0' && s[0] <= '9'))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
			return false;
	}
	return true;
}

static bool check_env(const char *pair, struct err *e)
{
	const char *eq = strchr(pair, '=');

	if (!eq || !variable_name_valid(pair, (size_t)(eq - pair)))
		return err_field(e, "env", "'%.64s' is not NAME=VALUE with a name of letters, digits and '_'", pair);
	if (text_starts(pair, "JOBSCHED_"))
		return err_field(e, "env", "'%.*s' is ours: names with JOBSCHED_ are set by the scheduler",
			(int)(eq - pair > 64 ? 64 : eq - pair), pair);
	if (strlen(eq + 1) > 32768)
		return err_field(e, "env", "the value of '%.*s' is longer than 32768 bytes",
			(int)(eq - pair > 64 ? 64 : eq - pair), pair);
	return true;
}

static bool check_tag(const char *pair, struct err *e)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
	const char *eq = strchr(pair, '=');
	size_t len = eq ? (size_t)(eq - pair) : 0;

	if (len == 0 || len > 64 || strspn(pair, allowed) != len)
		return err_field(e, "tags", "'%.64s' is not KEY=VALUE with a key of letters, digits and '._-/'", pair);
	if (strlen(eq + 1) > 256)
		return err_field(e, "tags", "the value of '%.*s' is longer than 256 bytes", (int)len, pair);
	return true;
}

static bool check_cwd(const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_field(e, "cwd", "the directory '%.200s' must be an absolute path", path);
	return true;
}

#define AT(member) offsetof(struct job_spec, member)

const struct job_field job_fields[] = {
	{.name = "name", .type = FIELD_TEXT, .offset = AT(name), .min = 1, .max = 128, .flag = "name",
		.short_flag = 'n', .arg = "NAME", .check = job_name_check,
		.help = "name of the job, unique among your jobs"},
	{.name = "command", .type = FIELD_LIST, .offset = AT(command), .max = 4096, .bytes = true,
		.help = "program and arguments, run without a shell"},
	{.name = "script", .type = FIELD_TEXT, .offset = AT(script), .min = 1, .max = 512 * 1024,
		.bytes = true, .help = "text for /bin/sh -c, instead of a command"},
	{.name = "schedule", .type = FIELD_LIST, .offset = AT(schedule), .max = 64,
		.help = "when it is due; none means now"},
	{.name = "tz", .type = FIELD_TEXT, .offset = AT(tz), .min = 1, .max = 64, .flag = "tz",
		.arg = "ZONE", .help = "time zone of the schedule, as Europe/Berlin"},
	{.name = "env", .type = FIELD_MAP, .offset = AT(env), .max = 128, .bytes = true, .flag = "env",
		.short_flag = 'e', .arg = "NAME=VALUE", .check = check_env,
		.help = "environment variable of the command; repeatable"},
	{.name = "tags", .type = FIELD_MAP, .offset = AT(tags), .max = 32, .flag = "tag",
		.short_flag = 't', .arg = "KEY=VALUE", .check = check_tag,
		.help = "label to filter by; repeatable"},
	{.name = "cwd", .type = FIELD_TEXT, .offset = AT(cwd), .min = 1, .max = 4095, .bytes = true,
		.flag = "cwd", .short_flag = 'C', .arg = "DIR", .check = check_cwd,
		.help = "working directory of the command"},
	{.name = "stdin", .type = FIELD_BLOB, .offset = AT(stdin_data), .max = 16 * 1024 * 1024,
		.bytes = true, .flag = "stdin", .arg = "FILE",
		.help = "file whose content the command reads; '-' is standard input"},
	{.name = "umask", .type = FIELD_OCTAL, .offset = AT(umask), .max = 0777, .preset = 077,
		.flag = "umask", .arg = "MODE", .help = "file mode creation mask, octal"},
	{.name = "priority", .type = FIELD_INT, .offset = AT(priority), .min = -100, .max = 100,
		.flag = "priority", .short_flag = 'p', .arg = "N",
		.help = "-100 to 100; of what is due, higher goes first"},
	{.name = "timeout", .type = FIELD_DURATION, .offset = AT(timeout), .min = 0, .max = 366 * USEC_DAY,
		.flag = "timeout", .arg = "DURATION", .help = "end an attempt that runs longer"},
	{.name = "grace", .type = FIELD_DURATION, .offset = AT(grace), .min = 0, .max = USEC_HOUR,
		.preset = 10 * USEC_SEC, .flag = "grace", .arg = "DURATION",
		.help = "time between SIGTERM and SIGKILL"},
	{.name = "output_limit", .type = FIELD_SIZE, .offset = AT(output_limit), .min = 0,
		.max = INT64_C(1) << 40, .preset = 10 * 1024 * 1024, .flag = "output-limit", .arg = "SIZE",
		.help = "bytes of output kept: a tenth from its start, the rest from its end"},
};
const size_t job_fields_count = ELEMENTS(job_fields);

const struct job_field *job_field_find(const char *name)
{
	for (size_t i = 0; i < job_fields_count; i++)
		if (strcmp(job_fields[i].name, name) == 0)
			return &job_fields[i];
	return NULL;
}
