/* SPDX-License-Identifier: Apache-2.0 */
/* Reads templates. */
#pragma once
#include "store/store.h"

/* Reads one template of this owner; ret->name NULL: there is none. Inside a transaction. */
bool list_templates_row(struct store *s, int64_t uid, const char *name, struct template *ret, struct err *e);
