/* SPDX-License-Identifier: Apache-2.0 */
/* Main function of the user lookup process, which calls NSS modules for the spawner. */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/spawner/lookup_process.h"
#include "exec/spawner/user_lookup.h"
#include "exec/worker/pam.h"
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define UID_LAST INT64_C(4294967294)

static bool lookup_user(const char *whom, struct user *ret, enum start_failure *why, struct err *e)
{
	const struct passwd *pw;
	int64_t uid;

	if (text_parse_int(whom, 0, UID_LAST, &uid))
		return user_lookup((uid_t)uid, ret, why, e);
	errno = 0;
	pw = getpwnam(whom);
	*why = errno && errno != ENOENT && errno != ESRCH ? START_TRANSIENT : START_NO_SUCH_USER;
	return pw ? user_lookup(pw->pw_uid, ret, why, e) : err_set(e, ERR_NOT_FOUND, "there is no user '%s'", whom);
}

int lookup_main(const char *whom, bool pam)
{
	struct lookup_answer *a = xcalloc(1, sizeof(*a));
	enum start_failure why = START_ERROR;
	struct err e = {};
	bool found, failed;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(2 * LOOKUP_TIMEOUT / USEC_SEC); /* in case the spawner does not kill this process */
	found = lookup_user(whom, &a->user, &why, &e) &&
		(!pam || pam_account_check(a->user.name, &why, &e));
	a->magic = LOOKUP_MAGIC;
	a->failure = found ? LOOKUP_FOUND : (int32_t)why;
	snprintf(a->error, sizeof(a->error), "%.*s", (int)sizeof(a->error) - 1, found ? "" : e.msg);
	failed = io_write_all(1, a, sizeof(*a)) < 0;
	free(a);
	return failed;
}
