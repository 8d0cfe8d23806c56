/* SPDX-License-Identifier: Apache-2.0 */
/* The crontabs that 'jobctl import crontab' reads. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include <stdbool.h>

struct args;
struct err;

/* One table. */
struct crontab_source {
	char *label;           /* its path, "standard input" or "crontab of ann" */
	char *user;            /* the owner of a user table that --user selected; NULL: the caller */
	bool system;           /* entries have a user */
	struct buf data;
	struct crontab *table; /* NULL until crontab_sources_parse() */
};

struct crontab_sources {
	struct crontab_source *v;
	size_t n;
	struct strv accounts;  /* of --users, sorted; used if 'accounts_given' */
	bool accounts_given;
	enum crontab_mode mode;
};
void crontab_sources_done(struct crontab_sources *s);

/* Reads the tables that the options select, and parses them. */
bool crontab_sources_read(struct crontab_sources *s, const struct args *a, struct err *e);
/* The user as whom cron runs an entry, and to whom it mails without MAILTO; NULL: the caller has no account. */
const char *crontab_source_user(const struct crontab_source *s, const struct crontab_entry *e);
/* Whether --users, or without it the system, has this account. */
bool crontab_sources_account(const struct crontab_sources *s, const char *name);
