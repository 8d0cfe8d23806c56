/* SPDX-License-Identifier: Apache-2.0 */
/* What will apply to a job by its sandbox profile, in words. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct ctl;
struct err;

bool sandbox_describe(struct ctl *c, const char *profile /* NULL: the default */, struct buf *out, struct err *e);
