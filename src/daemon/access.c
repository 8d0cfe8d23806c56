/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: one table, asked by every route. */
#include "daemon/access.h"

static const bool allowed[VERB_MAX][ROLE_MAX] = {
	/*                owner other  admin */
	[VERB_SUBMIT] = { true, false, true },
	[VERB_SEE] =    { true, false, true },
	[VERB_CANCEL] = { true, false, true },
	[VERB_REMOVE] = { true, false, true },
	[VERB_CHANGE] = { true, false, true },
	[VERB_TEMPLATE] = { true, false, true },
	[VERB_NOTIFY] = { true, false, true },
	[VERB_STATUS] = { true, true,  true },
	[VERB_PAUSE] =  { true, false, true },
	[VERB_TRIGGER] = { true, false, true },
	[VERB_FREEZE] = { false, false, true },
	[VERB_QUEUES] = { true, true,  true },
	[VERB_DEAD] =   { true, false, true },
	[VERB_LIMIT] =  { false, false, true },
	[VERB_DATABASE] = { false, false, true },
};

bool access_serves(const struct access *a, uint32_t uid)
{
	if (uid == UID_OVERFLOW || uid == UINT32_MAX)
		return false;
	return !a->user_mode || uid == a->self || uid == 0;
}

enum access_role access_role(const struct access *a, uint32_t uid, uint32_t owner)
{
	if (!access_serves(a, uid))
		return ROLE_OTHER;
	if (uid == 0 || (a->user_mode && uid == a->self))
		return ROLE_ADMIN;
	return uid == owner ? ROLE_OWNER : ROLE_OTHER;
}

bool access_may(const struct access *a, uint32_t uid, enum access_verb verb, uint32_t owner)
{
	return verb < VERB_MAX && allowed[verb][access_role(a, uid, owner)];
}

int64_t access_scope(const struct access *a, uint32_t uid, enum access_verb verb)
{
	bool others = access_role(a, uid, uid) == ROLE_ADMIN ? allowed[verb][ROLE_ADMIN]
							      : allowed[verb][ROLE_OTHER];

	return others ? -1 : (int64_t)uid;
}
