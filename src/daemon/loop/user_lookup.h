/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the user database on threads of its own: it may take long, and nobody else shall wait for it. */
#pragma once
#include "base/auto.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct names;
struct sd_event;

/* First member of what somebody asks. */
struct name_task {
	bool by_name;     /* the name is known and the uid is asked for; else the other way round */
	uint32_t uid;
	char *name;       /* owned */
	bool ok;
	struct err err;   /* ERR_NOT_FOUND, ERR_DENIED: there is no such user; ERR_BUSY: nobody can tell now */
	/* On the loop; owns the task. Once names_free() was called it may be on any thread, and must only free. */
	void (*done)(struct name_task *t);
	struct name_task *next;
};

bool names_new(struct sd_event *ev, struct names **ret, struct err *e);
void names_free(struct names *n); /* does not wait for a database that does not answer */
AUTO_DEFINE(names);
void names_ask(struct names *n, struct name_task *t /* moved */);
