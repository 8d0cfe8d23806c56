/* SPDX-License-Identifier: Apache-2.0 */
/* Names of start failures, and which of them are final. */
#include "core/start/start_failure.h"

static const char *const failure_names[START_FAILURE_MAX] = {
	[START_ERROR] = "error",
	[START_TRANSIENT] = "transient",
	[START_NO_SUCH_USER] = "no_such_user",
	[START_OTHER_USER] = "other_user",
	[START_NOT_ALLOWED] = "not_allowed",
	[START_NO_WARRANT] = "no_warrant",
	[START_ACCOUNT_DENIED] = "account_denied",
	[START_SANDBOX] = "sandbox",
	[START_LIMIT] = "limit",
	[START_SECRET] = "secret",
	[START_ARTIFACT] = "artifact",
	[START_LEASE] = "lease",
	[START_STOPPING] = "stopping",
};

const char *start_failure_name(enum start_failure f)
{
	return f < START_FAILURE_MAX ? failure_names[f] : "unknown";
}

bool start_failure_denies(enum start_failure f)
{
	return f >= START_NO_SUCH_USER && f <= START_ACCOUNT_DENIED;
}

bool start_failure_suspends(enum start_failure f)
{
	return f == START_NO_SUCH_USER || f == START_OTHER_USER;
}
