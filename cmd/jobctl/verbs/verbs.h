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
	const char *name;      /* one word or two ("queue add"); the last row has NULL */
	const char *operands;  /* as the synopsis shows them; NULL: none */
	const char *help;      /* one line, lower case */
	const char *details;   /* paragraphs of 'jobctl help VERB'; NULL: none */
	const struct opt *opts; /* NULL: none of its own */
	bool bare;             /* of two words: its first word alone means it too ("queue" is "queue list") */
	bool job_fields;       /* takes the flags of job_fields[] too */
	bool command;          /* what follows the first operand is a command, with options of its own */
	int min, max;          /* operands; max -1: any number */
	unsigned formats;      /* bits 1 << enum format of what it can write */
	int (*run)(struct ctl *c, const struct args *a); /* the exit code */
};

extern const struct verb verbs[];
extern const struct opt global_opts[]; /* every verb takes them, before or after its name */

const struct verb *verb_find(const char *name); /* by its whole name */

/* The verb that 'words' begin with, and how many of them name it. NULL: none. */
const struct verb *verb_match(const struct verb *table, char *const *words, size_t n, size_t *ret_used);
/* The next verb after 'v' (NULL: the first one) whose name begins with this word and has a second; NULL: none. */
const struct verb *verb_in_group(const struct verb *table, const struct verb *v, const char *word);
const char *verb_second_word(const struct verb *v); /* NULL: its name is one word */

#define OPTS_MAX 96
/* All options of a verb in the order of its help, global ones last; returns how many. */
size_t verb_opts(const struct verb *v, struct opt ret[OPTS_MAX]);
