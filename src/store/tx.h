/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions of a store. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct err;
struct store;

struct tx {
	struct store *s; /* NULL: none is open */
};
#define AUTO_TX AUTO_DONE(tx)
bool tx_begin(struct tx *t, struct store *s, bool write, struct err *e);
bool tx_commit(struct tx *t, struct err *e);
void tx_done(struct tx *t); /* rolls back unless committed */
