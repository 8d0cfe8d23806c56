/* SPDX-License-Identifier: Apache-2.0 */
/* Says when a job that was added or changed runs, or what keeps it from running. */
#pragma once
#include "base/buf.h"
#include "jobctl/ctl.h"
#include <jansson.h>

/* Appends "; it runs in 15m, at 2026-11-16T09:00:00Z, or up to 1m later", "; it is paused (jobctl resume 12)" or the like. */
void next_run_words(struct ctl *c, const json_t *job, struct buf *line);
