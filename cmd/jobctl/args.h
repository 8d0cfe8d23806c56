/* SPDX-License-Identifier: Apache-2.0 */
/* Parsed command line: options by name, operands in order. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct err;

/* An option of the command line. */
struct opt {
	const char *name;  /* long option; the last row of a list has NULL */
	char letter;       /* short option; 0: none */
	const char *arg;   /* name of its value in the help; NULL: the option takes no value */
	const char *help;  /* one line, lower case */
};

struct args;
struct args_how {
	const struct opt *opts; /* borrowed while parsing */
	size_t count;
	bool command;           /* the first operand ends the options: it begins a command */
};
/* Skips argv[0]. The values point into argv. */
bool args_parse(const struct args_how *how, int argc, char **argv, struct args **ret,
	struct err *e);
void args_free(struct args *a);
AUTO_DEFINE(args);

/* These abort for a name that is not among the options: that is a bug of the caller. */
size_t args_count(const struct args *a, const char *name);
const char *args_nth(const struct args *a, const char *name, size_t i);
const char *args_last(const struct args *a, const char *name); /* NULL: not given */
bool args_has(const struct args *a, const char *name);

size_t args_operands(const struct args *a, char *const **ret);
bool args_dashed(const struct args *a); /* '--' stands immediately before the first operand */
