/* SPDX-License-Identifier: Apache-2.0 */
/* What a person is told about a daemon that is there and does not answer. */
#pragma once
#include <stdbool.h>

struct ctl;
struct err;

/* Around a request that is answered soon: it is said once when it is not. */
void unresponsive_watch(struct ctl *c);
void unresponsive_watch_end(struct ctl *c);

/* Of a request that nobody answered in time: who it was, and what to type. */
bool unresponsive_explain(const struct ctl *c, struct err *e);
