/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: one table, asked by every route. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define UID_OVERFLOW 65534 /* what the kernel says for an identity it cannot express */

enum access_verb {
	VERB_SUBMIT,
	VERB_SEE,
	VERB_CANCEL,
	VERB_REMOVE,
	VERB_CHANGE,
	VERB_TEMPLATE,
	VERB_STATUS,
	VERB_PAUSE,   /* and resume */
	VERB_TRIGGER,
	VERB_FREEZE,  /* and thaw */
	VERB_QUEUES, /* see the queues */
	VERB_DEAD,    /* try dead letters again, purge them */
	VERB_LIMIT,  /* queues and limits are the administrator's to change */
	VERB_DATABASE, /* prune, back up, check the store as a whole */
	VERB_NOTIFY,  /* try the channels of a job */
	VERB_MAX
};
enum access_role { ROLE_OWNER, ROLE_OTHER, ROLE_ADMIN, ROLE_MAX };

struct access {
	bool user_mode;
	uint32_t self; /* uid of the daemon */
};

bool access_serves(const struct access *a, uint32_t uid); /* may connect at all */
enum access_role access_role(const struct access *a, uint32_t uid, uint32_t owner);
bool access_may(const struct access *a, uint32_t uid, enum access_verb verb, uint32_t owner);

/* Whose jobs 'verb' reaches, as the store wants it: -1 for everybody's, else the caller's own. */
int64_t access_scope(const struct access *a, uint32_t uid, enum access_verb verb);
