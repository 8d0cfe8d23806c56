/* SPDX-License-Identifier: Apache-2.0 */
/* Execution specification: the per-job data that the spawner receives and that warrants sign. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

/* Every member is listed in exec_spec_fields[]; the spawner receives no other data about a job. */
struct exec_spec {
	int64_t uid;            /* the spawner checks at the start that uid and owner name match */
	char *owner;
	struct strv argv;       /* with parameters replaced */
	char *tz;               /* NULL: none */
	struct strv env;        /* NAME=value, from the definition */
	struct strv params;     /* NAME=value: JOBSCHED_PARAM_NAME in the environment */
	char *cwd;              /* NULL: the owner's home, or / with a note if that fails */
	int64_t umask;
	struct blob stdin_hash; /* SHA-256 of the standard input; absent: /dev/null */
	int64_t mem, cpu, pids; /* bytes, percent of a CPU, number; 0: no limit */
	int64_t nice, ionice;   /* ionice as returned by limit_ionice_parse(); 0: unchanged */
	struct strv limits;     /* NAME=N, as limit_resource_print() writes it */
	struct strv notices;    /* commands of the exec: notify channels, each run by /bin/sh -c */
	char *sandbox;          /* the name of a profile; NULL: SANDBOX_PRESET */
	struct strv secrets;    /* NAME=file:/path, read as the owner */
	char *artifact;         /* URL of the artifact, which is mounted for part 0; NULL: none */
	char *sha256;           /* of the artifact, in hexadecimal; verified by the daemon */
	char *name;             /* of the job, only together with 'job'; NULL: none */
	int64_t leaves;         /* 1: processes that the command leaves continue after the run */
	int64_t cron;           /* 1: runs as cron runs a command: cron's environment, and processes that it leaves stay */
	int64_t heartbeat;      /* microseconds without a sign after which the worker is ended; 0: no limit */
	int64_t heartbeat_on_output; /* 1: output is a sign */
	int64_t results;        /* 1: the command gets a file for its results */
	int64_t checkpoint;     /* 1: the attempts of a run share a directory */
	int64_t gate;           /* 1: argv begins with a gate, see core/job/gate.h */
	struct blob job;        /* identity of the job, WARRANT_JOB_LEN bytes assigned by its first approval; absent: never approved */
};
void exec_spec_init(struct exec_spec *o); /* sets the defaults of exec_spec_fields[] */
void exec_spec_done(struct exec_spec *o);

enum exec_spec_type {
	EXEC_SPEC_INT,  /* int64_t */
	EXEC_SPEC_TEXT, /* char *, without NUL */
	EXEC_SPEC_LIST, /* struct strv */
	EXEC_SPEC_BLOB, /* struct blob */
	EXEC_SPEC_TYPE_MAX
};

struct exec_spec_field {
	uint16_t tag;        /* must never change; rows are sorted by tag */
	enum exec_spec_type type;
	const char *name;
	size_t offset;       /* in struct exec_spec */
	int64_t min, max;    /* range of a number, or of the length of a text, blob or list member */
	int64_t preset;      /* of a number; not encoded, so that a new field does not change existing encodings */
	size_t count;        /* maximum number of list members */
	bool required;       /* the text must be present, the list must not be empty */
	bool (*check)(const char *text); /* checks each text or member; may be NULL */
};
extern const struct exec_spec_field exec_spec_fields[];
extern const size_t exec_spec_fields_count;

#define EXEC_SPEC_MAX (6 << 20) /* bytes of an encoding */

/*
 * Records of tag (2 bytes), length (4 bytes) and content, in the order of the table. Numbers have 8
 * bytes. All integers are little-endian. The encoding is canonical: the parser refuses any other
 * encoding of the same data.
 */
bool exec_spec_encode(const struct exec_spec *o, struct buf *out, struct err *e); /* ERR_INVALID: out of bounds */
bool exec_spec_parse(struct exec_spec *ret, const void *data, size_t len, struct err *e);
