/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up a user, with its groups, in the user database. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/child/user.h"
#include "exec/spawner/user_lookup.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENTRY_MAX (64 << 10)

static bool user_text_copy(char *to, size_t size, const char *text, const char *otherwise)
{
	const char *from = text && text[0] ? text : otherwise;

	return (size_t)snprintf(to, size, "%s", from) < size;
}

static bool user_from_passwd(struct user *u, const struct passwd *pw)
{
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	return pw->pw_name[0] && user_text_copy(u->name, sizeof(u->name), pw->pw_name, "") &&
	       user_text_copy(u->home, sizeof(u->home), pw->pw_dir && pw->pw_dir[0] == '/' ? pw->pw_dir : "/", "/") &&
	       user_text_copy(u->shell, sizeof(u->shell), pw->pw_shell, "/bin/sh");
}

static int gid_compare(const void *a, const void *b)
{
	gid_t x = *(const gid_t *)a, y = *(const gid_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts and removes duplicates, as getgroups() returns them, so that both can be compared. */
static void groups_sort(struct user *u, int n)
{
	qsort(u->groups, (size_t)n, sizeof(u->groups[0]), gid_compare);
	for (int i = 0; i < n; i++)
		if (i == 0 || u->groups[i] != u->groups[i - 1])
			u->groups[u->groups_n++] = u->groups[i];
}

bool user_lookup(uid_t uid, struct user *ret, enum start_failure *why, struct err *e)
{
	AUTO_TEXT text = xcalloc(1, ENTRY_MAX);
	struct passwd pw, *found = NULL;
	int r = getpwuid_r(uid, &pw, text, ENTRY_MAX, &found), n = USER_GROUPS_MAX;

	*why = START_ERROR;
	memset(ret, 0, sizeof(*ret));
	/* these mean "no such user"; any other error means that the database could not be read */
	if (!found && (r == 0 || r == ENOENT || r == ESRCH)) {
		*why = START_NO_SUCH_USER;
		return err_set(e, ERR_NOT_FOUND, "there is no user with uid %u", (unsigned)uid);
	}
	if (!found) {
		*why = START_TRANSIENT;
		return err_set(e, ERR_BUSY, "uid %u could not be looked up: %s", (unsigned)uid,
			strerror(r));
	}
	if (!user_from_passwd(ret, &pw) || ret->uid != uid)
		return err_set(e, ERR_INVALID,
			"the entry of uid %u in the user database is damaged", (unsigned)uid);
	errno = 0;
	if (getgrouplist(ret->name, ret->gid, ret->groups, &n) < 0) {
		*why = errno && errno != ERANGE ? START_TRANSIENT : START_ERROR;
		return err_set(e, ERR_BUSY, "the groups of '%s' could not be looked up", ret->name);
	}
	groups_sort(ret, n);
	return true;
}

void user_lookup_self(struct user *ret)
{
	const struct passwd *pw = getpwuid(geteuid());

	memset(ret, 0, sizeof(*ret));
	ret->unnamed = true;
	if (pw && user_from_passwd(ret, pw))
		return;
	ret->uid = geteuid();
	ret->gid = getegid();
	snprintf(ret->name, sizeof(ret->name), "%u", (unsigned)ret->uid);
	user_text_copy(ret->home, sizeof(ret->home), "/", "/");
	user_text_copy(ret->shell, sizeof(ret->shell), "/bin/sh", "/bin/sh");
}
