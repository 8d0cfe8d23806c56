/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers the highest term of a store, so that a server that lost commits is noticed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;

/*
 * False when the store has gone back behind a term that was seen before: it was restored, or failed over to a copy
 * that lacked what was committed. A higher term is kept. 'file' NULL: nothing is kept, and all is well.
 */
int64_t highest_term_read(const char *file, const char *store_id); /* 0: nothing is known of this store */
bool highest_term_check(const char *file, const char *store_id, int64_t term, struct err *e);
