/* SPDX-License-Identifier: Apache-2.0 */
/* Templates as they are stored. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEMPLATES_MAX 1000 /* of one owner */

struct template {
	int64_t uid;
	char *name, *owner;
	int64_t revision;
	char *params;       /* JSON object: the default of each parameter, or null if a value must be given */
	char *spec;         /* JSON */
	usec_t created_at, updated_at;
};
struct template_list {
	struct template *v; /* owned */
	size_t n;
	bool more;          /* the page was ended by its size, and more templates follow */
};
void template_done(struct template *t);
void template_list_done(struct template_list *l);
