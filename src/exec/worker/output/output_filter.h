/* SPDX-License-Identifier: Apache-2.0 */
/* Masks secrets in the output of a worker before it is written to the output file. */
#pragma once
#include "base/deadline.h"
#include "exec/proto/output_file.h"
#include "exec/worker/output/secrets.h"

struct output_filter {
	struct secrets secrets;  /* the masked values, kept for a re-exec */
	struct secret_mask *secret_mask;       /* owned; NULL: no masking */
	struct deadline release; /* when bytes that are held back are released */
	int saved;               /* memfd with the state, for a re-exec; -1: none */
};
void output_filter_init(struct output_filter *v);
void output_filter_done(struct output_filter *v);
void output_filter_set_secrets(struct output_filter *v, struct secrets *s /* moved */);

/* Bytes that are held back get a deadline in 'all', 100 ms later. */
void output_filter_write(struct output_filter *v, struct deadlines *all,
	struct output_file_writer *out, const void *data, size_t len);
void output_filter_release(
	struct output_filter *v, struct deadlines *all, struct output_file_writer *out);

void output_filter_save(struct output_filter *v);  /* creates 'saved' */
/* restores the state from 'saved' */
bool output_filter_adopt(struct output_filter *v, struct output_file_writer *out);
