/* SPDX-License-Identifier: Apache-2.0 */
/* Description of a verb, with searches in a table of verbs. */
#pragma once
#include "jobctl/args.h"
#include <stdbool.h>
#include <stddef.h>

struct ctl;

struct verb {
	const char *name;      /* one word or two ("queue add"); the last row of a table has NULL */
	const char *group;     /* heading in 'jobctl help'; NULL: that of the row before */
	const char *operands;  /* as the synopsis shows them; NULL: none */
	const char *help;      /* one line, lower case */
	const char *details;   /* paragraphs of 'jobctl help VERB'; NULL: none */
	const struct opt *opts; /* NULL: none of its own */
	bool hidden;           /* for programs: neither in the help nor completed */
	bool bare; /* of two words: the first word alone selects it too ("queue" is "queue list") */
	bool job_fields;       /* takes the options of job_fields[] too */
	bool command;          /* the first operand begins a command that has options of its own */
	int min, max;          /* number of operands; max -1: any number */
	unsigned formats;      /* bits 1 << enum format of the formats it can write */
	int (*run)(struct ctl *c, const struct args *a); /* returns the exit code */
};

extern const struct opt global_opts[]; /* every verb takes them, before or after its name */

/* All searches take a table whose last row has no name. */
/* By its whole name; NULL: none. */
const struct verb *verb_find(const struct verb *table, const char *name);
/* The verb that 'words' begin with, and how many of them name it. NULL: none. */
const struct verb *verb_match(const struct verb *table, char *const *words, size_t n,
	size_t *ret_used);
/*
 * The next verb after 'v' (NULL: the first one) that has two words, the first of which is 'word'.
 * NULL: none.
 */
const struct verb *verb_in_group(const struct verb *table, const struct verb *v, const char *word);
const char *verb_second_word(const struct verb *v); /* NULL: its name is one word */

/* Whether the verb has an option of this name itself; it hides a global one. 'v' may be NULL. */
bool verb_has_opt(const struct verb *v, const char *name);

#define OPTS_MAX 160
/*
 * All options of a verb (NULL: the global ones) in the order of its help, global ones last; returns
 * their number.
 */
size_t verb_opts(const struct verb *v, struct opt ret[OPTS_MAX]);
