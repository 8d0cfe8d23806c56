/* SPDX-License-Identifier: Apache-2.0 */
/* A small store with something of everything, and an operation of each kind that changes it. */
#pragma once
#include "unit/store/store_fixture.h"

void world_build(struct store *s, const char *where); /* anew, whatever was there */
char *world_dump(const char *where);                  /* what the store holds, as text; caller frees */
struct op *world_op(enum op_kind kind);               /* not OP_NODE_POLL, which changes nothing; caller frees */
