/* SPDX-License-Identifier: Apache-2.0 */
/* Subject and body text of a notice. */
#pragma once
#include "base/buf.h"
#include "core/job/notice.h"
#include "core/job/run.h"

struct job_spec;
struct strv;

#define NOTICE_LINES 20         /* lines shown from the end of the output */
#define NOTICE_OUTPUT_MAX 16384 /* bytes of these lines */

/* The input; texts are borrowed and may be NULL. */
struct notice_facts {
	enum notice_kind kind;
	int64_t job;
	const char *job_name, *owner, *node;
	const struct run *run;          /* NULL: a notice about the job itself, or the run was deleted */
	const char *error;              /* of the last attempt */
	usec_t at;                      /* when it happened */
	usec_t typical;
	bool job_paused;                /* by the exit rule 'pause' */
	const char *job_reason;
	const struct run *last_success; /* NULL: none, or it was deleted */
	const struct strv *changed;     /* fields of the job changed since last_success; NULL: unknown */
	const char *output;             /* the end of the output, not escaped */
	size_t output_len;
	bool output_cut;                /* 'output' does not start at the beginning */
	const char *output_missing;     /* why the output is not available; NULL: it is */
};

void notice_text_subject(const struct notice_facts *f, struct buf *out); /* one line, escaped, no newline */
void notice_text_body(const struct notice_facts *f, struct buf *out);    /* lines, escaped */
void notice_text_run_ref(const struct notice_facts *f, struct buf *out); /* backup#17, or backup */
/* The offset of the last lines of the output. */
size_t notice_text_last_lines(const char *output, size_t len, size_t lines);
/* The names of the fields in which two definitions differ. */
void notice_text_changed_fields(const struct job_spec *before, const struct job_spec *after, struct strv *ret);
