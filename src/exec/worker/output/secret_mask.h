/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces secret values in a stream of output, also across chunk boundaries. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct secret_mask;

/*
 * Masked are: a value without its trailing line ends; each line of a value with several lines,
 * without surrounding blanks, if it has at least MASK_LINE_MIN bytes; and the base64 forms of the
 * value with both alphabets, in one piece or in lines of 76 characters, up to its last character. In
 * the form after other bytes, the first character may have bits of both and is not masked. Values shorter than
 * MASK_MIN are not masked, because they would match everywhere. Overlapping values become one
 * MASK_TEXT.
 */
#define MASK_TEXT "***"
#define MASK_MIN 4
#define MASK_LINE_MIN 8
#define MASK_VALUES_MAX 16
/* of all values together; a mask needs up to 130 times as much memory */
#define MASK_BYTES_MAX (64 << 10)

struct secret_mask_value {
	const void *data;
	size_t len;
};
typedef void secret_mask_out_fn(const void *data, size_t len, void *arg);

/* NULL: no value can be masked */
struct secret_mask *secret_mask_new(const struct secret_mask_value *values, size_t n);
/* overwrites the values with zeros */
void secret_mask_free(struct secret_mask *m);
AUTO_DEFINE(secret_mask);

/*
 * Passes on the bytes that cannot be the beginning of a secret; the others are held back. The time
 * is linear in len.
 */
void secret_mask_write(
	struct secret_mask *m, const void *data, size_t len, secret_mask_out_fn *out, void *arg);
/* bytes are held back until the next ones arrive */
bool secret_mask_holds(const struct secret_mask *m);
/* passes these bytes to 'out' unmasked, for a re-exec; they stay held back */
void secret_mask_held(const struct secret_mask *m, secret_mask_out_fn *out, void *arg);
/*
 * Passes on the bytes that are held back. A few bytes are written unchanged. More bytes, which may
 * be half of a secret, become MASK_TEXT, and the rest of that secret is masked when it arrives.
 */
void secret_mask_release(struct secret_mask *m, secret_mask_out_fn *out, void *arg);
