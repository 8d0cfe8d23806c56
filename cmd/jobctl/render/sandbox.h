/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the sandbox profile of a job. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct ctl;
struct err;

bool sandbox_describe(struct ctl *c, const char *profile /* NULL: the default */, struct buf *out,
	struct err *e);
