/* SPDX-License-Identifier: Apache-2.0 */
/* The crontabs of the machine as the spawner's reader found them: bytes, owner, and warrants. */
/*
 * Encoding: a magic number, then the members in the order of the structures below. Numbers have 8
 * bytes, little-endian. A text or a blob is its length in 4 bytes and its bytes. The last 4 bytes
 * are the magic number again, so that an incomplete list is recognised.
 */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include "core/job/warrant.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

enum table_kind {
	TABLE_SYSTEM,  /* /etc/crontab and /etc/cron.d: each line names its user */
	TABLE_USER,    /* of the spool: the file name is the user */
	TABLE_ANACRON, /* /etc/anacrontab: all lines are root's */
	TABLE_KIND_MAX
};

/* The approval of one line of a table that belongs to root. */
struct table_warrant {
	int64_t line;
	unsigned char job[WARRANT_JOB_LEN];
	unsigned char warrant[WARRANT_LEN];
};

/* The last run that anacron has recorded for a job of anacrontab. */
struct table_stamp {
	char *id;       /* owned */
	int64_t day;    /* YYYYMMDD */
};

struct table_file {
	char *path;     /* owned, as are the texts below */
	int64_t kind;   /* enum table_kind */
	int64_t uid;    /* owner of the file */
	char *user;     /* of a user table; else empty */
	char *problem;  /* why the file is not used; empty: it is used */
	struct blob content;
	struct table_warrant *warrants;
	size_t warrants_n;
};

struct table_list {
	int64_t mode;      /* enum crontab_mode */
	int64_t cron_pid;  /* process of the other cron daemon; 0: none runs */
	char *cron;        /* what runs crontabs besides this program: "cron (pid 12)"; empty: nothing */
	char *anacron;     /* what runs anacrontab; empty: nothing */
	struct table_file *files;
	size_t n;
	struct table_stamp *stamps;
	size_t stamps_n;
};
#define TABLE_FILE_MAX (1 << 20)   /* bytes of one table */
#define TABLE_FILES_MAX 16384
#define TABLE_LIST_MAX (64 << 20)  /* bytes of an encoded list */
#define TABLE_LINES_MAX 20000      /* warrants of one table */

void table_file_done(struct table_file *f);
void table_list_done(struct table_list *l);
void table_list_encode(const struct table_list *l, struct buf *out);
bool table_list_parse(struct table_list *ret, const void *data, size_t len, struct err *e);
