/* SPDX-License-Identifier: Apache-2.0 */
/* Users by their names. */
#include "daemon/loop/user_find.h"
#include "base/err.h"
#include "base/text.h"
#include "store/store.h"
#include <errno.h>
#include <pwd.h>
#include <string.h>

#define ENTRY_MAX 16384 /* of the user database */

bool user_lookup_uid(const char *name, uint32_t *ret_uid, struct err *e)
{
	char text[ENTRY_MAX];
	struct passwd pw, *found = NULL;
	int r = getpwnam_r(name, &pw, text, sizeof(text), &found);

	if (found) {
		*ret_uid = found->pw_uid;
		return true;
	}
	/* "there is no such user" and "nobody knows at the moment" are not the same */
	if (r != 0 && r != ENOENT && r != ESRCH)
		return err_set(e, ERR_BUSY, "could not look up user '%.64s', try again: %s", name, strerror(r));
	return err_set(e, ERR_NOT_FOUND, "there is no user '%.64s'", name);
}

bool user_lookup_owner(struct store *s, const char *ref, int64_t *ret, struct err *e)
{
	struct err why = {};
	uint32_t uid;

	if (text_parse_int(ref, 0, INT64_MAX, ret))
		return true;
	if (user_lookup_uid(ref, &uid, &why)) {
		if (!owner_read_number(s, uid, ref, ret, e))
			return false;
		if (*ret < 0)
			*ret = uid;
		return true;
	}
	if (why.kind == ERR_NOT_FOUND && !owner_read_named(s, ref, ret, e))
		return false;
	if (why.kind == ERR_NOT_FOUND && *ret >= 0)
		return true;
	*e = why;
	return false;
}
