/* SPDX-License-Identifier: Apache-2.0 */
/* Names of jobs, runs, queues, nodes and templates for completion. */
#pragma once
#include "jobctl/complete/complete.h"

/* Asks the daemon; c->arg is the struct ctl. Errors are ignored: there are no candidates then. */
void complete_names(enum complete_kind kind, const char *prefix, struct completion *c);
