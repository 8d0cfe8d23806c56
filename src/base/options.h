/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a program, in a table that the parser and --help use. */
#pragma once
#include <stddef.h>

struct options_row {
	const char *name, *arg; /* 'arg' NULL: a flag */
	size_t offset;          /* in the structure of the program: a const char * for a text, a bool for a flag */
	const char *help;
};

struct options_program {
	const char *name;               /* "jobschedd" */
	const char *usage;              /* the lines of --help before the options */
	const struct options_row *rows; /* without --help and --version, which every program has */
	size_t n;
};

#define OPTIONS_GO_ON (-1)
#define OPTIONS_EXIT_USAGE 2

/*
 * Stores the options in *ret. Texts are borrowed from argv. Returns OPTIONS_GO_ON or the exit status: after --help, --version or
 * an error, which was printed.
 */
int options_parse(const struct options_program *p, int argc, char **argv, void *ret);
