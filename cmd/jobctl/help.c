/* SPDX-License-Identifier: Apache-2.0 */
/* 'jobctl help' and 'jobctl VERB --help', one option a line so that tools can read it too. */
#include "jobctl/help.h"

#include "jobctl/verb.h"
#include "base/buf.h"
#include "base/text.h"
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
	do
		buf_char(out, ' ');
	while (out->len - start < OPTION_COLUMN);
	buf_printf(out, "%s\n", o->help);
}

static bool is_global(const struct opt *o)
{
	for (const struct opt *g = global_opts; g->name; g++)
		if (strcmp(g->name, o->name) == 0)
			return true;
	return false;
}

static void add_options(struct buf *out, const struct verb *v, bool global)
{
	struct opt opts[OPTS_MAX];
	size_t n = verb_opts(v, opts);
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (is_global(&opts[i]) != global)
			continue;
		if (!any)
			buf_str(out, global ? "\nOptions of every verb:\n" : "\nOptions:\n");
		any = true;
		add_option(out, &opts[i]);
	}
}

void help_all(const struct verb *table, struct buf *out)
{
	buf_str(out, "Usage: jobctl [OPTION…] VERB [OPTION…] [OPERAND…]\n\n"
		     "Adds jobs to the scheduler, shows them, and ends them.\n\nVerbs:\n");
	for (const struct verb *v = table; v->name; v++)
		buf_printf(out, "  %-16s%s\n", v->name, v->help);
	add_options(out, NULL, true);
	buf_str(out, "\nA JOB is a number or a name; a RUN is 'backup#17', '12#17' or '#17'.\n"
		     "'jobctl help VERB' tells more about one of them, jobctl(1) about all.\n");
}

void help_group(const struct verb *table, const char *word, struct buf *out)
{
	buf_printf(out, "Usage: jobctl %s VERB [OPTION…] [OPERAND…]\n\nVerbs:\n", word);
	for (const struct verb *v = NULL; (v = verb_in_group(table, v, word));)
		buf_printf(out, "  %-16s%s%s\n", v->name, v->help,
			v->bare ? "; also without the second word" : "");
	buf_printf(out, "\n'jobctl help %s VERB' tells more about one of them, jobctl(1) about all.\n", word);
}

void help_verb(const struct verb *v, struct buf *out)
{
	buf_printf(out, "Usage: jobctl %s [OPTION…]%s%s\n\n%s%s.\n", v->name, v->operands ? " " : "",
		v->operands ? v->operands : "",
		(char[]){(char)(v->help[0] & ~0x20), 0}, v->help + 1);
	if (v->details)
		buf_printf(out, "\n%s", v->details);
	add_options(out, v, false);
	add_options(out, v, true);
}
