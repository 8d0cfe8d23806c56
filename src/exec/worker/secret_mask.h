/* SPDX-License-Identifier: Apache-2.0 */
/* Hides secret values in a stream of output, wherever the stream is cut into pieces. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct mask;

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
#define MASK_BYTES_MAX (64 << 10) /* of all values together; a mask takes up to 130 times as much */

struct mask_value {
	const void *data;
	size_t len;
};
typedef void mask_out_fn(const void *data, size_t len, void *arg);

struct mask *mask_new(const struct mask_value *values, size_t n); /* NULL: there is nothing to hide */
void mask_free(struct mask *m);                                   /* and what it knows is overwritten */
AUTO_DEFINE(mask);

/* What cannot be the beginning of a secret any more goes on to 'out'; the time is linear in len, whatever is in it. */
void mask_write(struct mask *m, const void *data, size_t len, mask_out_fn *out, void *arg);
bool mask_holds(const struct mask *m); /* something waits for what comes next */
void mask_held(const struct mask *m, mask_out_fn *out, void *arg); /* that, as it is; it goes on waiting */
/*
 * Nobody wants to wait any longer: a few held bytes go on as they are, more of them, which may be half a secret,
 * as MASK_TEXT; the rest of the secret is hidden when it comes.
 */
void mask_release(struct mask *m, mask_out_fn *out, void *arg);
