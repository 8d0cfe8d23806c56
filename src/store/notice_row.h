/* SPDX-License-Identifier: Apache-2.0 */
/* Notices as they are stored, one row per channel. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/notice.h"
#include <stddef.h>
#include <stdint.h>

struct notice {
	int64_t id, job, run;   /* run 0: about the job itself */
	int64_t uid;
	char *job_name, *owner; /* NULL: none, or the job was deleted */
	enum notice_kind kind;
	char *channel;          /* see policy_notify_parse() */
	enum notice_state state;
	int64_t tries;
	usec_t created_at, due_at, done_at;
	char *detail;           /* JSON: "last_success", "typical" */
	char *error;            /* of the last attempt to send it; NULL: none */
};
struct notice_list {
	struct notice **v;      /* owned */
	size_t n;
	int64_t next;           /* cursor of the next page; 0: this is the last one */
};
void notice_free(struct notice *n);
AUTO_DEFINE(notice);
void notice_list_done(struct notice_list *l);
