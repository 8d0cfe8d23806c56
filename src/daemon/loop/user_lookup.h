/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up users in the user database (NSS), which may take seconds. */
#pragma once
#include "base/auto.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct sd_event;
struct store;
struct user_lookup;

/* ---- blocking: never on the loop ---- */

/* ERR_NOT_FOUND: there is no such user. ERR_BUSY: the database does not answer. */
bool user_lookup_uid(const char *name, uint32_t *ret_uid, struct err *e);
/*
 * A user without a name: ERR_DENIED, or with 'or_number' the uid as text, which is enough in a
 * container with one user.
 */
bool user_lookup_name(uint32_t uid, bool or_number, char **ret, struct err *e);
/*
 * The owner number (core/job/owner.h) for a name or a number. Owners whose user has been deleted
 * are found in the store.
 */
bool user_lookup_owner(struct store *s, const char *ref, int64_t *ret, struct err *e);

/* ---- on threads ---- */

/* First member of a larger task. */
struct user_lookup_task {
	bool by_name;     /* looks up the uid of 'name'; otherwise the name of 'uid' */
	uint32_t uid;
	char *name;       /* owned */
	bool ok;
	/*
	 * ERR_NOT_FOUND, ERR_DENIED: there is no such user; ERR_BUSY: the database does not answer.
	 */
	struct err err;
	/*
	 * On the loop; owns the task. After user_lookup_free() it may be called on any thread, and
	 * must only free the task.
	 */
	void (*done)(struct user_lookup_task *t);
	struct user_lookup_task *next;
};

bool user_lookup_new(struct sd_event *ev, struct user_lookup **ret, struct err *e);
void user_lookup_free(struct user_lookup *n); /* does not wait for look-ups in progress */
AUTO_DEFINE(user_lookup);
void user_lookup_submit(struct user_lookup *n, struct user_lookup_task *t /* moved */);
