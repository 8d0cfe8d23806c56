/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a start's secrets, in the memory of the spawner only. */
#pragma once
#include "base/text.h"
#include "exec/worker/secret_mask.h"
#include <stdbool.h>
#include <sys/types.h>

struct buf;
struct err;
struct strv;
struct user;

#define SECRETS_MAX MASK_VALUES_MAX
#define SECRETS_BYTES MASK_BYTES_MAX     /* of all of a start together */
#define SECRETS_TIMEOUT (5 * USEC_SEC)  /* for reading them */

struct secrets {
	struct blob v[SECRETS_MAX]; /* owned, in the order of the order's names */
	size_t n;
};
void secrets_done(struct secrets *s); /* and they are overwritten */

/* As records of an error (32 bits, 0 here), a length (32 bits) and bytes; in memory, never on a disk. */
void secrets_encode(const struct secrets *s, struct buf *out);
/* False: cut off, too many or too large; or *ret_error is what the record of number *ret_at has in place of a value. */
bool secrets_parse(struct secrets *ret, const char *data, size_t len, int *ret_error, size_t *ret_at);
struct secret_mask *secrets_mask(const struct secrets *s); /* NULL: nothing to hide */

/* For a worker: memory files that only their owner can open, read-only. 0, or -errno. */
struct secrets_files {
	int v[SECRETS_MAX]; /* owned */
	size_t n;
};
void secrets_files_done(struct secrets_files *f);
int secrets_files_make(struct secrets_files *ret, const struct secrets *s, const struct user *owner /* NULL: ourselves */);
