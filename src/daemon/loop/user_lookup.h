/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the user database on threads of its own: it may take long, and nobody else shall wait for it. */
#pragma once
#include "base/auto.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct user_lookup;
struct sd_event;

/* First member of what somebody asks. */
struct user_lookup_task {
	bool by_name;     /* the name is known and the uid is asked for; else the other way round */
	uint32_t uid;
	char *name;       /* owned */
	bool ok;
	struct err err;   /* ERR_NOT_FOUND, ERR_DENIED: there is no such user; ERR_BUSY: nobody can tell now */
	/* On the loop; owns the task. Once user_lookup_free() was called it may be on any thread, and must only free. */
	void (*done)(struct user_lookup_task *t);
	struct user_lookup_task *next;
};

bool user_lookup_new(struct sd_event *ev, struct user_lookup **ret, struct err *e);
void user_lookup_free(struct user_lookup *n); /* does not wait for a database that does not answer */
AUTO_DEFINE(user_lookup);
void user_lookup_submit(struct user_lookup *n, struct user_lookup_task *t /* moved */);
