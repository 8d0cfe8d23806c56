/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the output files in the output directory. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct output_dir_list {
	struct output_dir_entry {
		int64_t run, attempt;
		usec_t changed_at;
	} *v;    /* owned */
	size_t n;
};
void output_dir_list_done(struct output_dir_list *l);
/* Ignores files with other names. */
bool output_dir_list_read(int dir, struct output_dir_list *ret, struct err *e);
