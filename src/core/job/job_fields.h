/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the fields of a job definition, read by the JSON codec, jobctl and the checks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum field_type {
	FIELD_TEXT,     /* char * */
	FIELD_LIST,     /* struct strv; JSON array of strings (a single string is a list of one) */
	FIELD_MAP,      /* struct strv of K=V; JSON object of strings */
	FIELD_BLOB,     /* struct blob; JSON string */
	FIELD_INT,      /* int64_t */
	FIELD_OCTAL,    /* int64_t; JSON string "022" */
	FIELD_SIZE,     /* int64_t bytes; JSON number, text "10M" on the command line */
	FIELD_DURATION, /* usec_t; JSON number of seconds or text "1h30m"; written as seconds */
	FIELD_TIME,     /* usec_t; JSON text, RFC 3339; 0: none */
	FIELD_CHOICE,   /* int64_t, an index of 'choices'; JSON text */
	FIELD_TYPE_MAX
};

struct job_field {
	const char *name;    /* name of the JSON member, also used in messages */
	enum field_type type;
	size_t offset;       /* in struct job_spec */
	int64_t min, max;    /* range of a number, of the length of a text or blob, or of the size of a list */
	int64_t preset;      /* default value of a number */
	const char *const *choices; /* of FIELD_CHOICE: max + 1 words */
	bool bytes;          /* NAME_b64 is used for values that are not UTF-8 */
	const char *flag;    /* long option of 'jobctl add'; NULL: not an option of its own */
	char short_flag;     /* 0: none */
	const char *arg;     /* NAME, DURATION, K=V … */
	const char *help;    /* one line, lower case */
	bool (*check)(const char *value, struct err *e); /* checks each text or member; may be NULL */
	bool bare;           /* of FIELD_CHOICE: the option takes no argument and selects the last word */
	bool quiet;          /* follows from other fields: not reported as a change */
};
extern const struct job_field job_fields[];
extern const size_t job_fields_count;
const struct job_field *job_field_find(const char *name);

/* The value of a numeric field (FIELD_INT and later types) in text form: 022, 10M, 1h30m, skip … */
bool job_field_parse(const struct job_field *f, const char *text, int64_t *ret, struct err *e);
char *job_field_print(const struct job_field *f, int64_t n); /* caller frees */
