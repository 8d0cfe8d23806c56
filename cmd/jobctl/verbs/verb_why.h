/* SPDX-License-Identifier: Apache-2.0 */
/* The text of 'jobctl why'. */
#pragma once
#include <jansson.h>

struct buf;
struct ctl;

/* 'answer' is that of the API for a job, or for a run of it. */
void verb_why_text(const struct ctl *c, const json_t *answer, struct buf *out);
