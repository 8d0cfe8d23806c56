/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons why an attempt was not started. */
#pragma once
#include <stdbool.h>

enum start_failure {
	START_ERROR,          /* an error of the command or the system, shown to the owner */
	START_TRANSIENT,      /* may succeed later: no memory, no process, user database not available */
	START_NO_SUCH_USER,
	START_OTHER_USER,     /* the owner's name and uid no longer match */
	START_NOT_ALLOWED,    /* spawner.conf does not allow jobs of this user */
	START_NO_WARRANT,     /* a warrant is required, and is missing or does not match */
	START_ACCOUNT_DENIED, /* denied by PAM */
	START_SANDBOX,        /* the sandbox profile is not available on this machine */
	START_LIMIT,          /* a limit cannot be enforced on this machine */
	START_SECRET,         /* a secret cannot be read */
	START_ARTIFACT,       /* the artifact is missing or has another hash */
	START_LEASE,          /* the spawner's deadline for the node lease has passed; the run itself is fine */
	START_STOPPING,       /* the spawner is stopping; the run itself is fine */
	START_FAILURE_MAX
};
const char *start_failure_name(enum start_failure f);
bool start_failure_denies(enum start_failure f);    /* concerns the owner: a retry cannot succeed */
bool start_failure_suspends(enum start_failure f);  /* ... and neither can any other slot of the job */
