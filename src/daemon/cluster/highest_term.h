/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers the highest term that was seen of a store, so that a server that lost commits is detected. */
#pragma once
#include "store/store.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

int64_t highest_term_read(const char *file, const char *store_id); /* 0: the file has no term of this store */
/*
 * False if 'term' is below a term that was seen before: the server was restored, or failed over to a replica that lacked
 * commits. A higher term is written to the file. With 'file' NULL nothing is kept, and the result is true.
 */
bool highest_term_check(const char *file, const char *store_id, int64_t term, struct err *e);
