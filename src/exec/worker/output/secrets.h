/* SPDX-License-Identifier: Apache-2.0 */
/* The secret values of a start, which are held in the memory of the spawner only. */
#pragma once
#include "base/text.h"
#include "exec/worker/output/secret_mask.h"
#include <stdbool.h>
#include <sys/types.h>

struct buf;
struct err;
struct strv;
struct user;

#define SECRETS_MAX MASK_VALUES_MAX
#define SECRETS_BYTES MASK_BYTES_MAX     /* of all values of a start together */
#define SECRETS_TIMEOUT (5 * USEC_SEC)  /* for reading them */

struct secrets {
	struct blob v[SECRETS_MAX]; /* owned, in the order of their names in the job */
	size_t n;
};
void secrets_done(struct secrets *s); /* overwrites them with zeros */

/*
 * Writes one record per value: an error (32 bits, 0 here), a length (32 bits) and the bytes. Used
 * in memory only.
 */
void secrets_encode(const struct secrets *s, struct buf *out);
/*
 * False: truncated, too many or too large; or record *ret_at has the error *ret_error instead of a
 * value.
 */
bool secrets_parse(
	struct secrets *ret, const char *data, size_t len, int *ret_error, size_t *ret_at);
struct secret_mask *secrets_mask(const struct secrets *s); /* NULL: no value can be masked */

/* Memory files for a worker, which only their owner can open. 0, or -errno. */
struct secrets_files {
	int v[SECRETS_MAX]; /* owned */
	size_t n;
};
void secrets_files_done(struct secrets_files *f);
int secrets_files_make(struct secrets_files *ret, const struct secrets *s,
	const struct user *owner /* NULL: the spawner's user */);
