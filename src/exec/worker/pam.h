/* SPDX-License-Identifier: Apache-2.0 */
/* PAM's word on whether a user may have jobs now, and the session of one who has. Only in processes that end afterwards. */
#pragma once
#include "core/job/start_plan.h"
#include <stdbool.h>

struct err;
struct strv;

#define ACCOUNT_SERVICE "jobsched" /* /etc/pam.d/jobsched */

bool account_available(void); /* whether we were built with PAM */
/* START_ACCOUNT_DENIED for every answer but yes (S-10): expired, locked, kept out by access.conf or nologin. */
bool account_check(const char *name, enum start_failure *why, struct err *e);

/* Its credentials and a session, or neither; what it adds to the environment, NAME=value. */
struct account_session;
bool account_open(const char *name, struct account_session **ret, struct strv *ret_env, struct err *e);
bool account_close(struct account_session *s, struct err *e); /* both, and frees it */
