/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: one table, asked by every route. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define UID_OVERFLOW 65534 /* what the kernel says for an identity it cannot express */

enum access_verb {
	VERB_SUBMIT,
	VERB_SUBMIT_AS, /* for somebody else */
	VERB_SEE,
	VERB_CANCEL,
	VERB_REMOVE,
	VERB_CHANGE,
	VERB_TEMPLATE,
	VERB_STATUS,
	VERB_PAUSE,
	VERB_RESUME,
	VERB_TRIGGER,
	VERB_FREEZE,  /* and thaw */
	VERB_QUEUES, /* see the queues */
	VERB_DEAD,    /* try dead letters again, purge them */
	VERB_LIMIT,  /* queues and limits are the administrator's to change */
	VERB_DATABASE, /* prune, back up, check the store as a whole */
	VERB_NODES,    /* orders to nodes */
	VERB_NOTIFY,  /* try the channels of a job */
	VERB_MAX
};

/* What somebody is to an object. ROLE_DENIED: its owner, whom the site's lists keep from starting anything. */
enum access_role { ROLE_OWNER, ROLE_DENIED, ROLE_OTHER, ROLE_ADMIN, ROLE_ROOT, ROLE_MAX };
const char *access_role_name(enum access_role r);

struct access {
	bool user_mode;
	uint32_t self; /* uid of the daemon */
};

/* Who asks: the kernel's word, and what follows from it. */
struct caller {
	uint32_t uid;
	int64_t number; /* as an owner: core/job/owner.h */
	bool admin;     /* in the group of administrators when he connected */
	bool denied;    /* by the site's lists */
};

bool access_serves(const struct access *a, uint32_t uid); /* may connect at all */
enum access_role access_role(const struct access *a, const struct caller *c, int64_t owner);
bool access_may(const struct access *a, const struct caller *c, enum access_verb verb, int64_t owner);

/* Whose jobs 'verb' reaches, as the store wants it: OWNER_ALL, OWNER_NOT_ROOT, or the caller's own number. */
int64_t access_scope(const struct access *a, const struct caller *c, enum access_verb verb);
