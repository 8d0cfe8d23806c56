/* SPDX-License-Identifier: Apache-2.0 */
/* A small store with rows of every kind, and an operation of each kind. */
#pragma once
#include "unit/store/store_fixture.h"

void world_build(struct store *s, const char *where); /* replaces everything in the store */
char *world_dump(const char *where);                  /* the rows of the store as text; caller frees */
struct op *world_op(enum op_kind kind);               /* not OP_NODE_POLL, which changes nothing; caller frees */
