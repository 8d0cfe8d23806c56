/* SPDX-License-Identifier: Apache-2.0 */
/* Hides secret values in a stream of output, wherever the stream is cut into pieces. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct secret_mask;

/*
 * Hidden are: a value without the line ends at its end; each line of a value with several lines, without the blanks around
 * it, if it has at least MASK_LINE_MIN bytes; and the base64 form of the value, in one piece or in lines of 76 characters,
 * to its last character. Values shorter than MASK_MIN are not hidden because they would match everywhere. Two values that
 * overlap become one MASK_TEXT.
 */
#define MASK_TEXT "***"
#define MASK_MIN 4
#define MASK_LINE_MIN 8
#define MASK_VALUES_MAX 16
#define MASK_BYTES_MAX (64 << 10) /* of all values together; a secret_mask takes up to 130 times as much */

struct secret_mask_value {
	const void *data;
	size_t len;
};
typedef void secret_mask_out_fn(const void *data, size_t len, void *arg);

struct secret_mask *secret_mask_new(const struct secret_mask_value *values, size_t n); /* NULL: there is nothing to hide */
void secret_mask_free(struct secret_mask *m);                                   /* and what it knows is overwritten */
AUTO_DEFINE(secret_mask);

/* What cannot be the beginning of a secret any more goes on to 'out'; the time is linear in len, whatever is in it. */
void secret_mask_write(struct secret_mask *m, const void *data, size_t len, secret_mask_out_fn *out, void *arg);
bool secret_mask_holds(const struct secret_mask *m); /* something waits for what comes next */
void secret_mask_held(const struct secret_mask *m, secret_mask_out_fn *out, void *arg); /* that, as it is; it goes on waiting */
/*
 * Nobody wants to wait any longer: a few held bytes go on as they are, more of them, which may be half a secret,
 * as MASK_TEXT; the rest of the secret is hidden when it comes.
 */
void secret_mask_release(struct secret_mask *m, secret_mask_out_fn *out, void *arg);
