/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from spawner.conf. Any error rejects the whole file. */
#pragma once
#include "base/auto.h"
#include "core/job/sandbox_profile.h"
#include "core/job/warrant.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum pam_policy { PAM_POLICY_OFF, PAM_POLICY_ACCOUNT, PAM_POLICY_SESSION, PAM_POLICY_MAX };
/* If the machine does not support a feature. */
enum missing_policy { MISSING_REFUSE, MISSING_REPORT, MISSING_POLICY_MAX };

struct uid_range {
	int64_t first, last;
};
#define UID_RANGES_MAX 32

#define TABLE_PATH_MAX 256
#define TABLE_SPOOLS 2
/* Where crontabs are. Empty: none. */
struct table_conf {
	int64_t mode;                  /* enum crontab_mode */
	char system[TABLE_PATH_MAX];   /* a file with a user in each line */
	char dir[TABLE_PATH_MAX];      /* such files */
	char spool[TABLE_SPOOLS][TABLE_PATH_MAX]; /* one file for each user */
	char anacron[TABLE_PATH_MAX];
};

struct spawner_conf {
	char engine_user[64];         /* may connect, besides root */
	struct uid_range uids[UID_RANGES_MAX]; /* may have jobs */
	size_t uids_n;
	int64_t require_warrant;      /* enum warrant_policy */
	int64_t pam;                  /* enum pam_policy */
	int64_t sandbox_missing;      /* enum missing_policy */
	struct sandbox_profiles sandboxes; /* built-in profiles and the sections [sandbox NAME] */
	int64_t limit_missing;        /* enum missing_policy, for limits of jobs */
	/* Limits of all runs of one owner together: bytes, percent, number; 0: none. */
	int64_t owner_memory, owner_cpu, owner_pids;
	struct table_conf tables;
};
void spawner_conf_init(struct spawner_conf *c); /* sets the defaults */
void spawner_conf_done(struct spawner_conf *c);
bool spawner_conf_parse(struct spawner_conf *c, char *text /* modified */, const char *path,
	struct err *e);
/* A missing file means defaults. The file and its directory must be writable by root only. */
bool spawner_conf_read(struct spawner_conf *c, const char *path, struct err *e);
bool spawner_conf_uid_allowed(const struct spawner_conf *c, int64_t uid); /* never 65534 or -1 */
