/* SPDX-License-Identifier: Apache-2.0 */
/* Parses memory, CPU, I/O priority and rlimit values. */
#include "core/job/limits.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

const char *limit_kind_words(unsigned kinds)
{
	return kinds & LIMIT_MEMORY ? "memory" : kinds & LIMIT_CPU ? "processor time" : "the number of processes";
}

/* Up to two decimals, so that 0.01 and 1% are the same. */
static bool parse_hundredths(const char *text, int64_t *ret)
{
	const char *point = strchr(text, '.');
	AUTO_TEXT whole = point ? xstrndup(text, (size_t)(point - text)) : xstrdup(text);
	int64_t n, part = 0;

	if (!text_parse_int(whole, 0, LIMIT_CPU_MAX, &n))
		return false;
	if (point && (strlen(point + 1) < 1 || strlen(point + 1) > 2 || !text_parse_int(point + 1, 0, 99, &part)))
		return false;
	if (point && !point[2])
		part *= 10;
	*ret = n * 100 + part;
	return true;
}

bool limit_cpu_parse(const char *text, int64_t *ret, struct err *e)
{
	size_t len = strlen(text);
	bool percent = len > 1 && text[len - 1] == '%';
	AUTO_TEXT number = xstrndup(text, percent ? len - 1 : len);
	int64_t n;

	if (!(percent ? text_parse_int(number, 1, LIMIT_CPU_MAX, &n) : parse_hundredths(number, &n)) || n < 1 || n > LIMIT_CPU_MAX)
		return err_field(e, "cpu", "'%.40s' is not a share of processors: write 50%% of one, or 1.5 of them", text);
	*ret = n;
	return true;
}

bool limit_ionice_parse(const char *text, int64_t *ret, struct err *e)
{
	static const char best[] = "best-effort";
	int64_t level = 4;

	if (strcmp(text, "idle") == 0) {
		*ret = LIMIT_IONICE_IDLE;
		return true;
	}
	if (!text_starts(text, best) || (text[strlen(best)] && (text[strlen(best)] != ':' ||
						!text_parse_int(text + strlen(best) + 1, 0, 7, &level))))
		return err_field(e, "ionice", "'%.40s' is not idle or best-effort:N with N of 0 to 7", text);
	*ret = level + 1;
	return true;
}

static const struct {
	const char *name;
	int resource;
	bool bytes;
} resources[] = {
	{"as", RLIMIT_AS, true},
	{"core", RLIMIT_CORE, true},
	{"cpu", RLIMIT_CPU, false},
	{"data", RLIMIT_DATA, true},
	{"fsize", RLIMIT_FSIZE, true},
	{"memlock", RLIMIT_MEMLOCK, true},
	{"nofile", RLIMIT_NOFILE, false},
	{"nproc", RLIMIT_NPROC, false},
	{"stack", RLIMIT_STACK, true},
};

const char *limit_resource_name(int resource)
{
	for (size_t i = 0; i < ELEMENTS(resources); i++)
		if (resources[i].resource == resource)
			return resources[i].name;
	return "?";
}

static bool parse_value(const char *text, bool bytes, int64_t *ret)
{
	if (strcmp(text, "unlimited") == 0) {
		*ret = LIMIT_UNLIMITED;
		return true;
	}
	return bytes ? text_parse_size(text, ret) && *ret >= 0 : text_parse_int(text, 0, INT64_MAX, ret);
}

bool limit_resource_parse(const char *pair, int *ret_resource, int64_t *ret_value, struct err *e)
{
	const char *eq = strchr(pair, '=');
	size_t len = eq ? (size_t)(eq - pair) : 0;

	for (size_t i = 0; eq && i < ELEMENTS(resources); i++) {
		if (strlen(resources[i].name) != len || memcmp(resources[i].name, pair, len) != 0)
			continue;
		if (!parse_value(eq + 1, resources[i].bytes, ret_value))
			return err_field(e, "limits", "'%.40s' is not a limit of '%s': write %s or unlimited", eq + 1,
				resources[i].name, resources[i].bytes ? "4096, 64K, 10M, 1G" : "a number");
		*ret_resource = resources[i].resource;
		return true;
	}
	return err_field(e, "limits", "'%.40s' is not NAME=N with a name of as, core, cpu, data, fsize, memlock, nofile, "
				      "nproc, stack", pair);
}

char *limit_resource_print(const char *pair)
{
	int64_t value;
	int resource;

	if (!limit_resource_parse(pair, &resource, &value, NULL))
		return NULL;
	if (value == LIMIT_UNLIMITED)
		return xprintf("%s=unlimited", limit_resource_name(resource));
	return xprintf("%s=%" PRId64, limit_resource_name(resource), value);
}

bool limit_resource_plain(const char *pair)
{
	AUTO_TEXT plain = limit_resource_print(pair);

	return plain && strcmp(plain, pair) == 0;
}

bool limits_check(const struct job_spec *s, unsigned missing, struct err *e)
{
	unsigned asked = (s->mem ? LIMIT_MEMORY : 0U) | (s->cpu ? LIMIT_CPU : 0U) | (s->pids ? LIMIT_PIDS : 0U);
	const char *const fields[] = {"mem", "cpu", "pids"};

	if (s->mem && s->mem < LIMIT_MEMORY_MIN)
		return err_field(e, "mem", "no program runs in less than 1M of memory");
	for (unsigned i = 0; i < ELEMENTS(fields); i++)
		if (asked & missing & 1U << i)
			return err_field(e, fields[i], "%s of a run cannot be limited here: the spawner has no control groups "
						       "that do so; leave the limit out, or see 'limit-missing' in spawner.conf(5)",
				limit_kind_words(1U << i));
	return true;
}
