/* SPDX-License-Identifier: Apache-2.0 */
/* Prints help texts, one option per line so that programs can read them. */
#include "jobctl/help.h"

#include "base/buf.h"
#include "base/text.h"
#include "jobctl/verb.h"
#include <string.h>

#define OPTION_COLUMN 28

static void add_option(struct buf *out, const struct opt *o)
{
	size_t start = out->len;

	if (o->letter)
		buf_printf(out, "  -%c, --%s", o->letter, o->name);
	else
		buf_printf(out, "      --%s", o->name);
	if (o->arg)
		buf_printf(out, " %s", o->arg);
	buf_char(out, ' ');
	do
		buf_char(out, ' ');
	while (out->len - start < OPTION_COLUMN);
	buf_printf(out, "%s\n", o->help);
}

/* Not an option of the verb itself, which may hide a global one. */
static bool is_global(const struct verb *v, const struct opt *o)
{
	if (verb_has_opt(v, o->name))
		return false;
	for (const struct opt *g = global_opts; g->name; g++)
		if (strcmp(g->name, o->name) == 0)
			return true;
	return false;
}

/*
 * Headings for the many options of a job. An option that is not listed here stands under "Options".
 */
static const struct {
	const char *heading;
	const char *names[20];
} job_groups[] = {
	{"When to run", {"at", "in", "every", "cron", "iso", "after-finish", "on", "manual", "tz",
				"from", "until", "jitter", "dst-gap", "dst-fold", "catchup"}},
	{"What to run", {"cwd", "env", "env-file", "stdin", "umask", "param", "template", "secret",
				"artifact", "sha256"}},
	{"Limits", {"timeout", "run-timeout", "grace", "sandbox", "mem", "cpu", "pids", "nice",
			   "ionice", "limit", "output-limit"}},
	{"Which due run starts, and where", {"priority", "queue", "overlap", "max-running", "rate",
						    "deadline", "expires", "when", "node-label"}},
	{"Failures and notices", {"retries", "backoff", "on-exit", "on-lost", "notify"}},
};
#define JOB_GROUPS (sizeof(job_groups) / sizeof(job_groups[0]))

/* The index of its heading in job_groups; JOB_GROUPS: none. */
static size_t job_group(const struct opt *o)
{
	for (size_t i = 0; i < JOB_GROUPS; i++)
		for (const char *const *name = job_groups[i].names; *name; name++)
			if (strcmp(*name, o->name) == 0)
				return i;
	return JOB_GROUPS;
}

static void add_heading(struct buf *out, const char *heading, bool *any)
{
	if (!*any)
		buf_printf(out, "\n%s:\n", heading);
	*any = true;
}

static void add_global_options(struct buf *out, const struct verb *v)
{
	buf_str(out, "\nGlobal options:\n");
	for (const struct opt *o = global_opts; o->name; o++)
		if (!verb_has_opt(v, o->name))
			add_option(out, o);
}

static void add_options(struct buf *out, const struct verb *v)
{
	struct opt opts[OPTS_MAX];
	size_t n = verb_opts(v, opts);
	bool any = false;

	for (size_t i = 0; i < n; i++)
		if (!is_global(v, &opts[i]) && (!v->job_fields || job_group(&opts[i]) == JOB_GROUPS)) {
			add_heading(out, "Options", &any);
			add_option(out, &opts[i]);
		}
	for (size_t g = 0; v->job_fields && g < JOB_GROUPS; g++) {
		any = false;
		for (size_t i = 0; i < n; i++)
			if (!is_global(v, &opts[i]) && job_group(&opts[i]) == g) {
				add_heading(out, job_groups[g].heading, &any);
				add_option(out, &opts[i]);
			}
	}
	add_global_options(out, v);
}

void help_all(const struct verb *table, struct buf *out)
{
	buf_str(out, "Usage: jobctl [OPTION…] VERB [OPTION…] [OPERAND…]\n\n"
		     "Submits jobs to the scheduler, shows them and controls them.\n");
	for (const struct verb *v = table; v->name; v++) {
		if (v->group)
			buf_printf(out, "\n%s:\n", v->group);
		if (!v->hidden)
			buf_printf(out, "  %-16s%s\n", v->name, v->help);
	}
	add_global_options(out, NULL);
	buf_str(out, "\nA JOB is a number or a name. A RUN is 'backup#17', '12#17' or '#17'.\n"
		     "'jobctl help VERB' describes one verb. The manual is jobctl(1).\n");
}

void help_group(const struct verb *table, const char *word, struct buf *out)
{
	buf_printf(out, "Usage: jobctl %s VERB [OPTION…] [OPERAND…]\n\nVerbs:\n", word);
	for (const struct verb *v = NULL; (v = verb_in_group(table, v, word));)
		buf_printf(out, "  %-16s%s%s\n", v->name, v->help,
			v->bare ? " (default)" : "");
	buf_printf(out, "\n'jobctl help %s VERB' describes one of them. The manual is jobctl(1).\n",
		word);
}

void help_verb(const struct verb *v, struct buf *out)
{
	buf_printf(out, "Usage: jobctl %s [OPTION…]%s%s\n\n%s%s.\n", v->name,
		v->operands ? " " : "", v->operands ? v->operands : "",
		(char[]){(char)(v->help[0] & ~0x20), 0}, v->help + 1);
	if (v->details)
		buf_printf(out, "\n%s", v->details);
	add_options(out, v);
}
