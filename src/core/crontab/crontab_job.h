/* SPDX-License-Identifier: Apache-2.0 */
/* Turns an entry of a crontab into a job definition that behaves as under cron. */
#pragma once
#include "base/sha256.h"
#include <stdbool.h>
#include <stddef.h>

struct crontab;
struct crontab_entry;
struct job_spec;
struct line_identities;
struct strv;

#define CRONTAB_SHELL "/bin/sh"
#define CRONTAB_PATH "/usr/bin:/bin"

/*
 * Fills an initialised definition: schedule, command, input, variables in the order of their names, directory, and the
 * policies of cron (runs may overlap, missed slots are not caught up, no sandbox). Name, zone, tags and mail remain empty. A
 * variable that a job cannot have is left out.
 */
void crontab_job(const struct crontab *t, const struct crontab_entry *e, struct job_spec *out);
/*
 * Completes a definition that is submitted as an ordinary job: its zone ('zone' is that of the machine), and cron's SHELL and
 * PATH as variables. A command for /bin/sh becomes a script.
 */
void crontab_job_complete(const struct crontab *t, const struct crontab_entry *e, const char *zone, struct job_spec *out);
/*
 * Adds variables as NAME=value. A later value of a name replaces an earlier one. LOGNAME is left out. The result is sorted as in
 * the stored definition, so that the execution specification has the same bytes.
 */
void crontab_job_variables(const struct strv *from, struct job_spec *out);
void crontab_job_policies(struct job_spec *out); /* the policies of cron alone; catch-up is left as it is */

/* Whether the command is more than blanks. */
bool crontab_job_runs(const struct crontab_entry *e);

/*
 * The identity of an entry: table, user, command and input, which may be NULL. The schedule is not part of it, so that a
 * changed schedule leads to the same job. The entries of a table are passed in their order.
 */
void crontab_job_identity(struct line_identities *l, const struct crontab_entry *e, const char *table, const char *user,
	unsigned char ret[SHA256_LEN]);

enum crontab_mail { CRONTAB_MAIL_NONE, CRONTAB_MAIL_ALL, CRONTAB_MAIL_FAILURES, CRONTAB_MAIL_BAD };
/*
 * Adds the channel for the mail of an entry: MAILTO, or 'user' if the table sets none. ALL: "output:ADDRESS,…", which mails all
 * output as cron does. FAILURES (cronie's -n): "mail:ADDRESS" for each address. NONE: MAILTO is empty, or there is no user. BAD:
 * cron sends no mail to such a MAILTO, and nothing is added.
 */
enum crontab_mail crontab_job_mail(const struct crontab *t, const struct crontab_entry *e, const char *user /* NULL: none */,
	struct strv *out);
/* The same with the value of MAILTO; NULL: not set. */
enum crontab_mail crontab_job_mail_to(const char *mailto, const char *user, bool failures, struct strv *out);
