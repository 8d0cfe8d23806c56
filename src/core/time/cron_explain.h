/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the cron code: the parts of an explanation. */
#pragma once
#include "core/time/cron.h"

bool cron_has_year(const struct cron *c, int year);

/* " every day", " on the last Friday of every month"; nothing for every day when 'frequent'. */
void cron_explain_days(const struct cron *c, bool frequent, struct buf *out);
