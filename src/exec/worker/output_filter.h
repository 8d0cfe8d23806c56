/* SPDX-License-Identifier: Apache-2.0 */
/* What lies between a worker's pipe and its file: its secrets are hidden there. Without any it is nothing. */
#pragma once
#include "exec/worker/deadline.h"
#include "exec/proto/output_file.h"
#include "exec/worker/secrets.h"

struct veil {
	struct secrets secrets;  /* those to hide; for the program that may take our place */
	struct mask *mask;       /* owned; NULL: nothing to hide */
	struct deadline release; /* of what it holds back */
	int saved;               /* for that program, and from the one before: all this in memory; -1: nothing */
};
void veil_init(struct veil *v);
void veil_done(struct veil *v);
void veil_put(struct veil *v, struct secrets *s /* moved */);

/* Output goes through it; what it holds back is due in 'all' within a tenth of a second. */
void veil_write(struct veil *v, struct deadlines *all, struct output_writer *out, const void *data, size_t len);
void veil_release(struct veil *v, struct deadlines *all, struct output_writer *out);

void veil_save(struct veil *v);  /* makes 'saved' */
bool veil_adopt(struct veil *v, struct output_writer *out); /* makes the rest of 'saved' */
