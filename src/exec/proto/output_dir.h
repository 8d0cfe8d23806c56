/* SPDX-License-Identifier: Apache-2.0 */
/* Which attempts have a file of output. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct output_names {
	struct output_file {
		int64_t run, attempt;
		usec_t changed_at;
	} *v;    /* owned */
	size_t n;
};
void output_names_done(struct output_names *l);
bool output_names_read(int dir, struct output_names *ret, struct err *e); /* other names in it are passed over */
