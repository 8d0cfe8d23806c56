/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on templates: create, replace, remove. */
#pragma once
#include "base/clock.h"
#include "store/ops/op.h"
#include <stdint.h>

/* OP_TEMPLATE_PUT and OP_TEMPLATE_REMOVE; texts are borrowed */
struct op_template {
	struct op op;
	int64_t uid;
	const char *owner, *name;
	const char *params, *spec; /* JSON */
	usec_t now;
	int64_t bytes_limit; /* of all rows of this uid; 0: no limit */
	int64_t revision;    /* result: 1 when it is new */
};
OP_DEFINE(template, template, OP_TEMPLATE_PUT, OP_TEMPLATE_REMOVE)
