/* SPDX-License-Identifier: Apache-2.0 */
/* An order: what is the same in all runs of a job, as the spawner gets it and as a warrant covers it. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

/* Every member is listed in exec_spec_fields[]; nothing reaches the spawner for a job's sake that is not here. */
struct exec_spec {
	int64_t uid;            /* whose job it is: number and name must belong together when it starts */
	char *owner;
	struct strv argv;       /* after parameters */
	char *tz;               /* NULL: none */
	struct strv env;        /* NAME=value: the job's own */
	struct strv params;     /* NAME=value: JOBSCHED_PARAM_NAME in the environment */
	char *cwd;              /* NULL: the owner's home, or / with a note if that fails */
	int64_t umask;
	struct blob stdin_hash; /* SHA-256 of the standard input; absent: /dev/null */
	int64_t mem, cpu, pids; /* bytes, percent of a processor, number; 0: any */
	int64_t nice, ionice;   /* ionice as limit_ionice_parse() gives it; 0: as it is */
	struct strv limits;     /* NAME=N, as limit_resource_print() writes it */
	struct strv notices;    /* commands of exec: channels, each run by /bin/sh -c */
	char *sandbox;          /* the name of a profile; NULL: SANDBOX_PRESET */
	struct strv secrets;    /* NAME=file:/path, read as the owner */
	char *artifact;         /* URL of a tree that comes with every start of part 0; NULL: none */
	char *sha256;           /* of what is behind the URL, in hex; the engine has looked */
	char *name;             /* of the job, only together with its identity; NULL: none */
	struct blob job;        /* its identity: WARRANT_JOB_LEN bytes that its first approval gave it; absent: never approved */
};
void exec_spec_init(struct exec_spec *o); /* the defaults of the table */
void exec_spec_done(struct exec_spec *o);

enum exec_spec_type {
	EXEC_SPEC_INT,  /* int64_t */
	EXEC_SPEC_TEXT, /* char *, without NUL */
	EXEC_SPEC_LIST, /* struct strv */
	EXEC_SPEC_BLOB, /* struct blob */
	EXEC_SPEC_TYPE_MAX
};

struct exec_spec_field {
	uint16_t tag;        /* for ever; rows are in the order of their tags */
	enum exec_spec_type type;
	const char *name;
	size_t offset;       /* in struct exec_spec */
	int64_t min, max;    /* of the number; of the length of a text, blob or member of a list */
	int64_t preset;      /* of a number: not written when it is this, so that a new field leaves old orders as they are */
	size_t count;        /* members of a list */
	bool required;       /* a text that must be there, a list that must not be empty */
	bool (*check)(const char *text); /* of each text or member; may be NULL */
};
extern const struct exec_spec_field exec_spec_fields[];
extern const size_t exec_spec_fields_count;

#define EXEC_SPEC_MAX (6 << 20) /* bytes of an encoded one */

/*
 * Records of tag (2 bytes), length (4) and content, numbers in 8, all little-endian, in the order of the table.
 * One order has exactly one encoding: whatever else has the same meaning is refused.
 */
bool exec_spec_encode(const struct exec_spec *o, struct buf *out, struct err *e); /* ERR_INVALID: out of bounds */
bool exec_spec_parse(struct exec_spec *ret, const void *data, size_t len, struct err *e);
