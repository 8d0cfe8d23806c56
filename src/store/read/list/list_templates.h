/* SPDX-License-Identifier: Apache-2.0 */
/* Reads templates. */
#pragma once
#include "store/template.h"

struct err;
struct store;

/*
 * A template of the owner, else the one that root shares with all users. ERR_NOT_FOUND with field
 * "template".
 */
bool list_templates_get(struct store *s, int64_t uid, const char *name, struct template *ret, struct err *e);
/* The templates of one owner, by name. */
bool list_templates_page(struct store *s, int64_t uid, const char *after, size_t limit, struct template_list *ret,
	struct err *e);
/* Reads one template of this owner; ret->name NULL: there is none. Inside a transaction. */
bool list_templates_row(struct store *s, int64_t uid, const char *name, struct template *ret, struct err *e);
