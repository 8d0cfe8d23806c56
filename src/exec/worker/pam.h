/* SPDX-License-Identifier: Apache-2.0 */
/* PAM calls. PAM modules run in the calling process, so only short-lived processes use them. */
#pragma once
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include <stdbool.h>

struct err;
struct strv;

#define PAM_SERVICE_NAME "jobsched" /* /etc/pam.d/jobsched */

bool pam_available(void); /* the program was built with PAM */
/*
 * START_ACCOUNT_DENIED for every result but success: expired, locked, denied by access.conf or
 * nologin.
 */
bool pam_account_check(const char *name, enum start_failure *why, struct err *e);

/*
 * Credentials and a session; if one fails, there is neither. *ret_env gets the variables of the
 * session as NAME=value.
 */
struct pam_session;
bool pam_session_open(
	const char *name, struct pam_session **ret, struct strv *ret_env, struct err *e);
/* closes the session, deletes the credentials and frees it */
bool pam_session_close(struct pam_session *s, struct err *e);
