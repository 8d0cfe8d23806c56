/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of crontab(1) share. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>

struct crontab_command {
	const char *program;  /* the name it was called by */
	const char *user;     /* owner of the table */
	bool user_given;      /* -u */
	bool dry_run;         /* -n */
	bool ask;             /* -i */
	const char *file;     /* "-": standard input */
};

/* The exit status of a refused or failed request is 1 in all cases. */
enum install_result { INSTALL_DONE, INSTALL_BAD_TABLE, INSTALL_FAILED };

/* Checks the table and installs it unless -n was given. Messages are those of Debian's crontab. */
enum install_result install_table(const struct crontab_command *c, const char *label,
	const struct buf *table);

/* Requests to jobsched-crontab; messages are printed. */
bool request_access(const struct crontab_command *c);
bool request_remove(const struct crontab_command *c);
bool request_replace(const struct crontab_command *c, const char *label, const struct buf *table);
enum request_found { REQUEST_FOUND, REQUEST_NONE, REQUEST_FAILED };
enum request_found request_table(const struct crontab_command *c, struct buf *ret);

/* The start of a table after the header that was added when it was installed. */
const char *table_after_header(const struct buf *table);

int edit_table(const struct crontab_command *c); /* the exit status */

/* The first character of a line from standard input, in lower case; 'n' at the end of the input. */
int read_answer(void);
