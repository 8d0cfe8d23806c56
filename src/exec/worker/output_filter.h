/* SPDX-License-Identifier: Apache-2.0 */
/* What lies between a worker's pipe and its file: its secrets are hidden there. Without any it is nothing. */
#pragma once
#include "base/deadline.h"
#include "exec/proto/output_file.h"
#include "exec/worker/secrets.h"

struct output_filter {
	struct secrets secrets;  /* those to hide; for the program that may take our place */
	struct secret_mask *secret_mask;       /* owned; NULL: nothing to hide */
	struct deadline release; /* of what it holds back */
	int saved;               /* for that program, and from the one before: all this in memory; -1: nothing */
};
void output_filter_init(struct output_filter *v);
void output_filter_done(struct output_filter *v);
void output_filter_set_secrets(struct output_filter *v, struct secrets *s /* moved */);

/* Output goes through it; what it holds back is due in 'all' within a tenth of a second. */
void output_filter_write(struct output_filter *v, struct deadlines *all, struct output_file_writer *out, const void *data, size_t len);
void output_filter_release(struct output_filter *v, struct deadlines *all, struct output_file_writer *out);

void output_filter_save(struct output_filter *v);  /* makes 'saved' */
bool output_filter_adopt(struct output_filter *v, struct output_file_writer *out); /* makes the rest of 'saved' */
