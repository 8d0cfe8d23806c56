/* SPDX-License-Identifier: Apache-2.0 */
/* PAM's word on whether a user may have jobs now: expired, locked, kept out by access.conf or nologin. */
#pragma once
#include "core/plan.h"
#include <stdbool.h>

struct err;

#define ACCOUNT_SERVICE "jobsched" /* /etc/pam.d/jobsched */

bool account_available(void); /* whether we were built with PAM */
/* START_ACCOUNT_DENIED for every answer but yes (S-10). Only in a process that ends afterwards. */
bool account_check(const char *name, enum start_failure *why, struct err *e);
