/* SPDX-License-Identifier: Apache-2.0 */
/* Permissions: which caller may use which route. */
#pragma once
#include "core/job/token.h"
#include <stdbool.h>
#include <stdint.h>

#define UID_OVERFLOW 65534 /* uid that the kernel reports for an identity it cannot map */

enum access_verb {
	VERB_SUBMIT,
	VERB_SUBMIT_AS, /* for another user */
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
	VERB_QUEUES, /* list the queues */
	VERB_DEAD,    /* retry and purge dead letters */
	VERB_LIMIT,  /* change queues and limits */
	VERB_DATABASE, /* prune, back up and check the store */
	VERB_NODES,    /* commands to nodes */
	VERB_NOTIFY,  /* send a test notice to the channels of a job */
	VERB_TOKEN,   /* add, list and revoke tokens */
	VERB_SESSION, /* show the own identity, log out */
	VERB_METRICS, /* figures of all users */
	VERB_MAX
};

/*
 * The role of a caller towards an object. ROLE_DENIED: its owner, but the allow or deny file denies
 * starting anything.
 */
enum access_role { ROLE_OWNER, ROLE_DENIED, ROLE_OTHER, ROLE_ADMIN, ROLE_ROOT, ROLE_MAX };
const char *access_role_name(enum access_role r);

struct err;

struct access {
	bool user_mode;
	uint32_t self; /* uid of the daemon */
};

/* The caller as identified by the kernel, with the attributes derived from the uid. */
struct caller {
	uint32_t uid;
	int64_t number; /* owner number: core/job/owner.h */
	bool admin;     /* was in the administrators' group when it connected */
	bool denied;    /* by the allow or deny file */
	/* ---- over TCP ---- */
	bool token;            /* identified by a token, not by the kernel */
	enum token_role role;
	bool everyone;         /* a viewer of all owners */
	uint64_t verbs;        /* bits 1 << enum access_verb; 0: all of the role */
};

bool access_serves(const struct access *a, uint32_t uid); /* whether it may connect */
enum access_role access_role(const struct access *a, const struct caller *c, int64_t owner);
bool access_may(const struct access *a, const struct caller *c, enum access_verb verb,
	int64_t owner);

/*
 * The owners that 'verb' may act on, in the form the store expects: OWNER_ALL, OWNER_NOT_ROOT, or
 * the caller's number.
 */
int64_t access_scope(const struct access *a, const struct caller *c, enum access_verb verb);

const char *access_verb_name(enum access_verb v);
/* Verbs separated by commas, as bits; ERR_INVALID names an unknown one. */
bool access_scope_parse(const char *text, uint64_t *ret, struct err *e);
/* Whether the token permits the action, regardless of the owner; true for a caller without a token. */
bool access_token_may(const struct caller *c, enum access_verb verb);
/* The highest role of a token that the caller may create, and the role shown for it. */
enum token_role access_token_role(const struct access *a, const struct caller *c);
