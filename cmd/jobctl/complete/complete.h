/* SPDX-License-Identifier: Apache-2.0 */
/* Completes a command line of jobctl from the tables of verbs and options. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct strv;
struct verb;

/* A kind of value that an option or operand takes. */
enum complete_kind {
	COMPLETE_NOTHING,
	COMPLETE_WORDS,     /* fixed words */
	COMPLETE_JOBS,
	COMPLETE_RUNS,
	COMPLETE_DEAD,      /* dead letters */
	COMPLETE_QUEUES,
	COMPLETE_NODES,
	COMPLETE_TEMPLATES,
	COMPLETE_JOB_STATES,
	COMPLETE_RUN_STATES,
	COMPLETE_EVENTS,
	COMPLETE_SANDBOXES,
	COMPLETE_ZONES,
	COMPLETE_FIELDS,    /* KEY= of 'jobctl set' */
	COMPLETE_VERBS,
	COMPLETE_CHECKS,    /* of 'jobctl doctor' */
	COMPLETE_USERS,     /* this and the following ones are left to the shell */
	COMPLETE_FILES,
	COMPLETE_COMMANDS,
	COMPLETE_KIND_MAX
};

struct completion {
	const struct verb *table;
	/* Adds names from the daemon that begin with 'prefix'; does nothing without a daemon. */
	void (*names)(enum complete_kind kind, const char *prefix, struct completion *c);
	void *arg;                      /* of 'names' */
	const char *socket, *instance;  /* out, borrowed from the words: global options */
	bool user, system;              /* out */
	const char *word;               /* the word to be completed */
	size_t keep;                    /* bytes of 'word' before the value: "--state=" */
	size_t count;                   /* candidates so far */
	struct buf *out;                /* lines VALUE, tab, description; or ':users', ':files', ':commands' */
};

#define COMPLETE_MAX 500 /* candidates */

/* 'words' follow "jobctl"; the last one is completed and may be empty. */
void complete_words(struct completion *c, const struct strv *words);
/* Adds a candidate if it begins with the value typed so far. */
void complete_add(struct completion *c, const char *value, const char *help /* NULL: none */);

/* Splits the text of a command line as a shell does; the last word may be incomplete or empty. */
void complete_split(const char *line, struct strv *ret);
