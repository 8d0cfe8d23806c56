/* SPDX-License-Identifier: Apache-2.0 */
/* Reads notices. */
#pragma once
#include "store/notice_row.h"
#include <stdbool.h>

struct err;
struct set;
struct store;

struct notice_filter {
	int64_t uid;          /* -1: all owners */
	int64_t job;          /* 0: any */
	unsigned states;      /* bits 1 << enum notice_state; 0: all */
	int64_t before;       /* cursor: older notices follow; 0: from the newest */
	size_t limit;
};
bool list_notices_page(struct store *s, const struct notice_filter *f, struct notice_list *ret, struct err *e); /* newest first */
bool list_notices_get(struct store *s, struct set *ids, struct notice_list *ret, struct err *e); /* inside a transaction */
