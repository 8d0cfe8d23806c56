/* SPDX-License-Identifier: Apache-2.0 */
/* Reads notices. */
#pragma once
#include "store/store.h"

struct set;

bool list_notices_get(struct store *s, struct set *ids, struct notice_list *ret, struct err *e); /* inside a transaction */
