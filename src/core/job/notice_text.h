/* SPDX-License-Identifier: Apache-2.0 */
/* What a notice says: one line, and the rest that somebody needs who was not there. */
#pragma once
#include "base/buf.h"
#include "core/job/notice.h"
#include "core/job/run.h"

struct job_spec;
struct strv;

#define NOTICE_LINES 20         /* of the output's end */
#define NOTICE_OUTPUT_MAX 16384 /* bytes of it */

/* All that is known; texts are borrowed and may be NULL. */
struct notice_facts {
	enum notice_kind kind;
	int64_t job;
	const char *job_name, *owner, *node;
	const struct run *run;          /* NULL: of the job as such, or its row is gone */
	const char *error;              /* of the last attempt */
	usec_t at;                      /* when it happened */
	usec_t typical;
	bool job_paused;                /* its exit code asked for that */
	const char *job_reason;
	const struct run *last_success; /* NULL: none, or its row is gone */
	const struct strv *changed;     /* the fields that differ since then; NULL: nobody knows */
	const char *output;             /* the end of what it wrote, bytes as they were */
	size_t output_len;
	bool output_cut;                /* there is more before it */
	const char *output_missing;     /* why there is none; NULL: it is all here */
};

void notice_text_subject(const struct notice_facts *f, struct buf *out); /* one line, escaped, no newline */
void notice_text_body(const struct notice_facts *f, struct buf *out);    /* lines, escaped */
void notice_text_run_ref(const struct notice_facts *f, struct buf *out); /* backup#17, or backup */
/* From where on the last lines of the output begin. */
size_t notice_text_last_lines(const char *output, size_t len, size_t lines);
/* The names of the fields in which two definitions differ. */
void notice_text_changed_fields(const struct job_spec *before, const struct job_spec *after, struct strv *ret);
