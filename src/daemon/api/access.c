/* SPDX-License-Identifier: Apache-2.0 */
/* Permission table that every route consults. */
#include "daemon/api/access.h"
#include "core/job/owner.h"

/*
 * NOT_ROOTS: administrators may not do this to a job of root, because it would start a command that
 * root did not write. A user on the deny list may see and stop existing jobs but not start
 * anything, as with at(1) and cron(8).
 */
enum word { NO, YES, NOT_ROOTS };

static const unsigned char allowed[VERB_MAX][ROLE_MAX] = {
	/*                    owner denied other admin      root */
	[VERB_SUBMIT] =     { YES,  NO,    NO,   YES,       YES },
	[VERB_SUBMIT_AS] =  { NO,   NO,    NO,   NOT_ROOTS, YES },
	[VERB_SEE] =        { YES,  YES,   NO,   YES,       YES },
	[VERB_CANCEL] =     { YES,  YES,   NO,   YES,       YES },
	[VERB_REMOVE] =     { YES,  YES,   NO,   YES,       YES },
	[VERB_CHANGE] =     { YES,  NO,    NO,   NOT_ROOTS, YES },
	[VERB_TEMPLATE] =   { YES,  NO,    NO,   YES,       YES },
	[VERB_STATUS] =     { YES,  YES,   YES,  YES,       YES },
	[VERB_PAUSE] =      { YES,  YES,   NO,   YES,       YES },
	[VERB_RESUME] =     { YES,  NO,    NO,   YES,       YES },
	[VERB_TRIGGER] =    { YES,  NO,    NO,   NOT_ROOTS, YES },
	[VERB_FREEZE] =     { NO,   NO,    NO,   YES,       YES },
	[VERB_QUEUES] =     { YES,  YES,   YES,  YES,       YES },
	[VERB_DEAD] =       { YES,  NO,    NO,   YES,       YES },
	[VERB_LIMIT] =      { NO,   NO,    NO,   YES,       YES },
	[VERB_DATABASE] =   { NO,   NO,    NO,   YES,       YES },
	[VERB_NODES] =      { NO,   NO,    NO,   YES,       YES },
	[VERB_NOTIFY] =     { YES,  NO,    NO,   YES,       YES },
};

static const char *const role_names[ROLE_MAX] = {[ROLE_OWNER] = "user", [ROLE_DENIED] = "denied",
	[ROLE_OTHER] = "other", [ROLE_ADMIN] = "administrator", [ROLE_ROOT] = "root"};

const char *access_role_name(enum access_role r)
{
	return role_names[r];
}

bool access_serves(const struct access *a, uint32_t uid)
{
	if (uid == UID_OVERFLOW || uid == UINT32_MAX)
		return false;
	return !a->user_mode || uid == a->self || uid == 0;
}

enum access_role access_role(const struct access *a, const struct caller *c, int64_t owner)
{
	if (!access_serves(a, c->uid))
		return ROLE_OTHER;
	if (c->uid == 0 || (a->user_mode && c->uid == a->self))
		return ROLE_ROOT;
	if (c->denied)
		return c->number == owner ? ROLE_DENIED : ROLE_OTHER;
	if (c->admin)
		return ROLE_ADMIN;
	return c->number == owner ? ROLE_OWNER : ROLE_OTHER;
}

bool access_may(const struct access *a, const struct caller *c, enum access_verb verb,
	int64_t owner)
{
	enum word word = verb < VERB_MAX ? (enum word)allowed[verb][access_role(a, c, owner)] : NO;

	return word == YES || (word == NOT_ROOTS && owner_uid(owner) != 0);
}

int64_t access_scope(const struct access *a, const struct caller *c, enum access_verb verb)
{
	enum access_role role = access_role(a, c, c->number);
	enum word word = (enum word)
		allowed[verb][role == ROLE_ROOT || role == ROLE_ADMIN ? role : ROLE_OTHER];

	return word == YES ? OWNER_ALL : word == NOT_ROOTS ? OWNER_NOT_ROOT : c->number;
}
