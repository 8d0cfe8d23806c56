/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons why an attempt was not started. */
#pragma once
#include <stdbool.h>

enum start_failure {
	START_ERROR,          /* of the command or the system; told to the owner as it is */
	START_TRANSIENT,      /* another try is worth it: no memory, no process, the user database does not answer */
	START_NO_SUCH_USER,
	START_OTHER_USER,     /* name and number of the owner do not belong together any more */
	START_NOT_ALLOWED,    /* the spawner's configuration does not let this user have jobs */
	START_NO_WARRANT,     /* one is needed, and there is none or not for this order */
	START_ACCOUNT_DENIED, /* PAM says no */
	START_SANDBOX,        /* what the job's profile asks for cannot be had here */
	START_LIMIT,          /* a limit that cannot be enforced here */
	START_SECRET,         /* a secret cannot be read */
	START_ARTIFACT,       /* the artifact is not there or not what was promised */
	START_LEASE,          /* the node's lease is over at the spawner: nothing is wrong with the run */
	START_STOPPING,       /* the spawner leaves; nor is it with this one */
	START_FAILURE_MAX
};
const char *start_failure_name(enum start_failure f);
bool start_failure_denies(enum start_failure f);    /* it is about who the owner is: trying again changes nothing */
bool start_failure_suspends(enum start_failure f);  /* ... and no slot of the job would fare better */
