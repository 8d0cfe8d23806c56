/* SPDX-License-Identifier: Apache-2.0 */
/* PAM's word on whether a user may have jobs now, and the session of one who has. Only in processes that end afterwards. */
#pragma once
#include "core/job/start_failure.h"
#include "core/job/start_plan.h"
#include <stdbool.h>

struct err;
struct strv;

#define PAM_SERVICE_NAME "jobsched" /* /etc/pam.d/jobsched */

bool pam_available(void); /* whether we were built with PAM */
/* START_ACCOUNT_DENIED for every answer but yes (S-10): expired, locked, kept out by access.conf or nologin. */
bool pam_account_check(const char *name, enum start_failure *why, struct err *e);

/* Its credentials and a session, or neither; what it adds to the environment, NAME=value. */
struct pam_session;
bool pam_session_open(const char *name, struct pam_session **ret, struct strv *ret_env, struct err *e);
bool pam_session_close(struct pam_session *s, struct err *e); /* both, and frees it */
