/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs: dispatch, help and completion read it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct args;
struct ctl;

struct opt {
	const char *name;  /* long option; the last row of a list has NULL */
	char letter;       /* 0: none */
	const char *arg;   /* word for its value; NULL: it takes none */
	const char *help;  /* one line, lower case */
};

struct verb {
	const char *name;      /* the last row has NULL */
	const char *operands;  /* as the synopsis shows them; NULL: none */
	const char *help;      /* one line, lower case */
	const char *details;   /* paragraphs of 'jobctl help VERB'; NULL: none */
	const struct opt *opts; /* NULL: none of its own */
	bool job_fields;       /* takes the flags of job_fields[] too */
	bool command;          /* what follows the first operand is a command, with options of its own */
	int min, max;          /* operands; max -1: any number */
	unsigned formats;      /* bits 1 << enum format of what it can write */
	int (*run)(struct ctl *c, const struct args *a); /* the exit code */
};

extern const struct verb verbs[];
extern const struct opt global_opts[]; /* every verb takes them, before or after its name */

const struct verb *verb_find(const char *name);

#define OPTS_MAX 96
/* All options of a verb in the order of its help, global ones last; returns how many. */
size_t verb_opts(const struct verb *v, struct opt ret[OPTS_MAX]);
