/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the options of a program by its table. */
#include "base/options.h"
#include "base/auto.h"
#include "base/text.h"
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const struct options_row common[] = {
	{"help", NULL, 0, "show this help"},
	{"version", NULL, 0, "show the version"},
};
enum { OPTION_HELP, OPTION_VERSION };

static void rows_print(const struct options_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		AUTO_TEXT name = xprintf("--%s %s", rows[i].name, rows[i].arg ? rows[i].arg : "");

		printf("  %-22s %s\n", name, rows[i].help);
	}
}

/* OPTIONS_GO_ON, or the exit status. */
static int common_apply(const struct options_program *p, size_t which)
{
	if (which == OPTION_VERSION) {
		printf("%s %s\n", p->name, PACKAGE_VERSION);
		return EXIT_SUCCESS;
	}
	printf("%s\n", p->usage);
	rows_print(p->rows, p->n);
	rows_print(common, ELEMENTS(common));
	return EXIT_SUCCESS;
}

static void row_apply(const struct options_row *row, void *ret)
{
	char *at = (char *)ret + row->offset;

	if (row->arg)
		*(const char **)at = optarg;
	else
		*(bool *)at = true;
}

static struct option *long_options(const struct options_program *p)
{
	struct option *longs = xcalloc(p->n + ELEMENTS(common) + 1, sizeof(*longs));

	for (size_t i = 0; i < p->n; i++)
		longs[i] = (struct option){p->rows[i].name, p->rows[i].arg ? required_argument : no_argument, NULL, 0};
	for (size_t i = 0; i < ELEMENTS(common); i++)
		longs[p->n + i] = (struct option){common[i].name, no_argument, NULL, 0};
	return longs;
}

int options_parse(const struct options_program *p, int argc, char **argv, void *ret)
{
	struct option *longs = long_options(p);
	int c, i = 0, status = OPTIONS_GO_ON;

	while (status == OPTIONS_GO_ON && (c = getopt_long(argc, argv, "", longs, &i)) == 0)
		if ((size_t)i < p->n)
			row_apply(&p->rows[i], ret);
		else
			status = common_apply(p, (size_t)i - p->n);
	free(longs);
	if (status != OPTIONS_GO_ON || (c == -1 && optind == argc))
		return status;
	if (c == -1)
		fprintf(stderr, "%s: unexpected argument '%s'\n", p->name, argv[optind]);
	fprintf(stderr, "try '%s --help'\n", p->name);
	return OPTIONS_EXIT_USAGE;
}
