/* SPDX-License-Identifier: Apache-2.0 */
/* Permission table that every route consults. */
#include "daemon/api/access.h"
#include "base/err.h"
#include "core/job/owner.h"
#include <string.h>

/*
 * NOT_ROOTS: administrators may not do this to a job of root, because it would start a command that
 * root did not write. A user on the deny list may see and stop existing jobs but not start
 * anything, as with at(1) and cron(8).
 */
enum word { NO, YES, NOT_ROOTS };

/* 'least': the role that a token needs; 'name': in the scope of a token. */
static const struct {
	unsigned char allowed[ROLE_MAX];
	unsigned char least;
	const char *name;
} verbs[VERB_MAX] = {
	/*                      owner denied other admin      root */
	[VERB_SUBMIT] =     {{YES,  NO,    NO,   YES,       YES}, TOKEN_OPERATOR, "submit"},
	[VERB_SUBMIT_AS] =  {{NO,   NO,    NO,   NOT_ROOTS, YES}, TOKEN_ADMIN, "submit-as"},
	[VERB_SEE] =        {{YES,  YES,   NO,   YES,       YES}, TOKEN_VIEWER, "see"},
	[VERB_CANCEL] =     {{YES,  YES,   NO,   YES,       YES}, TOKEN_OPERATOR, "cancel"},
	[VERB_REMOVE] =     {{YES,  YES,   NO,   YES,       YES}, TOKEN_OPERATOR, "remove"},
	[VERB_CHANGE] =     {{YES,  NO,    NO,   NOT_ROOTS, YES}, TOKEN_OPERATOR, "change"},
	[VERB_TEMPLATE] =   {{YES,  NO,    NO,   YES,       YES}, TOKEN_OPERATOR, "template"},
	[VERB_STATUS] =     {{YES,  YES,   YES,  YES,       YES}, TOKEN_VIEWER, "status"},
	[VERB_PAUSE] =      {{YES,  YES,   NO,   YES,       YES}, TOKEN_OPERATOR, "pause"},
	[VERB_RESUME] =     {{YES,  NO,    NO,   YES,       YES}, TOKEN_OPERATOR, "resume"},
	[VERB_TRIGGER] =    {{YES,  NO,    NO,   NOT_ROOTS, YES}, TOKEN_OPERATOR, "trigger"},
	[VERB_FREEZE] =     {{NO,   NO,    NO,   YES,       YES}, TOKEN_ADMIN, "freeze"},
	[VERB_QUEUES] =     {{YES,  YES,   YES,  YES,       YES}, TOKEN_VIEWER, "queues"},
	[VERB_DEAD] =       {{YES,  NO,    NO,   YES,       YES}, TOKEN_OPERATOR, "dead"},
	[VERB_LIMIT] =      {{NO,   NO,    NO,   YES,       YES}, TOKEN_ADMIN, "limit"},
	[VERB_DATABASE] =   {{NO,   NO,    NO,   YES,       YES}, TOKEN_ADMIN, "database"},
	[VERB_NODES] =      {{NO,   NO,    NO,   YES,       YES}, TOKEN_ADMIN, "nodes"},
	[VERB_NOTIFY] =     {{YES,  NO,    NO,   YES,       YES}, TOKEN_OPERATOR, "notify"},
	[VERB_TOKEN] =      {{YES,  YES,   NO,   NOT_ROOTS, YES}, TOKEN_ADMIN, "token"},
	[VERB_SESSION] =    {{YES,  YES,   YES,  YES,       YES}, TOKEN_VIEWER, "session"},
	[VERB_METRICS] =    {{NO,   NO,    NO,   YES,       YES}, TOKEN_VIEWER, "metrics"},
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

const char *access_verb_name(enum access_verb v)
{
	return verbs[v].name;
}

static bool verb_find(const char *name, size_t len, enum access_verb *ret)
{
	for (int v = 0; v < VERB_MAX; v++)
		if (strlen(verbs[v].name) == len && strncmp(verbs[v].name, name, len) == 0) {
			*ret = (enum access_verb)v;
			return true;
		}
	return false;
}

bool access_scope_parse(const char *text, uint64_t *ret, struct err *e)
{
	uint64_t bits = UINT64_C(1) << VERB_SESSION;

	while (*text) {
		size_t len = strcspn(text, ",");
		enum access_verb v;

		if (!verb_find(text, len, &v))
			return err_field(e, "scope",
				"there is no verb '%.*s' for the scope of a token; see jobctl(1)",
				(int)(len < 40 ? len : 40), text);
		bits |= UINT64_C(1) << v;
		text += len + (text[len] == ',');
	}
	*ret = bits;
	return true;
}

bool access_token_may(const struct caller *c, enum access_verb verb)
{
	if (!c->token)
		return true;
	return verb < VERB_MAX && c->role >= (enum token_role)verbs[verb].least &&
	       (c->verbs == 0 || c->verbs >> verb & 1);
}

/* The role of a token towards the objects of 'owner'. An operator is only their owner. */
static enum access_role token_access_role(const struct access *a, const struct caller *c,
	int64_t owner)
{
	bool all = c->role == TOKEN_ADMIN || (c->role == TOKEN_VIEWER && c->everyone);

	if (all && (c->uid == 0 || a->user_mode))
		return ROLE_ROOT;
	if (c->denied)
		return c->number == owner ? ROLE_DENIED : ROLE_OTHER;
	if (all)
		return ROLE_ADMIN;
	return c->number == owner ? ROLE_OWNER : ROLE_OTHER;
}

enum access_role access_role(const struct access *a, const struct caller *c, int64_t owner)
{
	if (!access_serves(a, c->uid))
		return ROLE_OTHER;
	if (c->token)
		return token_access_role(a, c, owner);
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
	enum word word;

	if (verb >= VERB_MAX || !access_token_may(c, verb))
		return false;
	word = (enum word)verbs[verb].allowed[access_role(a, c, owner)];
	return word == YES || (word == NOT_ROOTS && owner_uid(owner) != 0);
}

int64_t access_scope(const struct access *a, const struct caller *c, enum access_verb verb)
{
	enum access_role role = access_role(a, c, c->number);
	enum word word;

	if (!access_token_may(c, verb))
		return c->number;
	word = (enum word)verbs[verb]
		       .allowed[role == ROLE_ROOT || role == ROLE_ADMIN ? role : ROLE_OTHER];
	return word == YES ? OWNER_ALL : word == NOT_ROOTS ? OWNER_NOT_ROOT : c->number;
}

enum token_role access_token_role(const struct access *a, const struct caller *c)
{
	enum access_role role = access_role(a, c, c->number);

	if (c->token)
		return c->role;
	return role == ROLE_ROOT || role == ROLE_ADMIN ? TOKEN_ADMIN : TOKEN_OPERATOR;
}
