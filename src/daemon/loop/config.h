/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the daemon, by a table of keys. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;

struct config {
	char *store;      /* NULL: jobs.db in the state directory */
	char *node_name;  /* NULL: the host name */
	int64_t log_level;
	int64_t max_running;       /* 0: auto, adjusted to the load of the machine */
	int64_t owner_max_running; /* 0: no limit; below 0: percent; or CONFIG_SHARE_AUTO */
	int64_t time_sync_wait; /* seconds */
	int64_t lease;          /* seconds */
	int64_t run_lease;      /* seconds; 0: auto, see config_run_lease */
	char *labels;           /* of this node */
	int64_t may_lead;       /* 0: never */
	int64_t connections, connections_per_uid, connections_reserved;
	int64_t body_limit, bulk_body_limit, bulk_jobs;
	int64_t bodies_per_uid, bodies_total;   /* bytes */
	int64_t answers_per_uid, answers_total; /* bytes */
	int64_t jobs_per_uid, submissions_per_second, submissions_burst;
	int64_t head_timeout, body_timeout; /* seconds */
	int64_t keep_days, keep_runs, keep_dead_days; /* of history */
	int64_t store_budget, owner_store_limit, output_budget; /* bytes; 0: no limit */
	int64_t output_limit;     /* bytes of one attempt */
	int64_t artifact_limit, artifact_budget;      /* bytes */
	int64_t artifact_timeout; /* seconds */
	char *archive;    /* directory; NULL: nothing is archived */
	char *machine_id_file;
	char *sendmail;         /* NULL: SENDMAIL_DEFAULT */
	char *webhook_key_file; /* NULL: webhooks are not signed */
	int64_t notice_slots;   /* notices sent at the same time */
	int64_t notice_retry;   /* seconds */
	char *admin_group;      /* NULL: ADMIN_GROUP_DEFAULT */
	char *allow_file, *deny_file; /* NULL: beside jobschedd.conf */
};

#define ADMIN_GROUP_DEFAULT "jobsched-admin"
#define SENDMAIL_DEFAULT "/usr/sbin/sendmail"

enum config_type {
	CONFIG_TEXT,
	CONFIG_NUMBER,
	CONFIG_SIZE,
	CONFIG_LEVEL,
	CONFIG_YES,   /* yes or no */
	CONFIG_AUTO,  /* a number, or 'auto', which is 0 */
	CONFIG_SHARE, /* a number, a share such as 75% (stored as -75), 'none' (0) or 'auto' */
};
#define CONFIG_SHARE_AUTO INT64_MIN

struct config_key {
	const char *name;
	enum config_type type;
	size_t offset;       /* in struct config */
	int64_t min, max, preset;
	bool reload;         /* applied on SIGHUP; the other keys need a restart */
	const char *help;
};
extern const struct config_key config_keys[];
extern const size_t config_keys_count;

void config_init(struct config *c); /* sets the defaults */
void config_done(struct config *c);
/*
 * Unknown keys, sections and invalid values are errors that name the line. A missing file is an
 * error with 'must_exist'.
 */
bool config_read(struct config *c, const char *path, bool must_exist, struct err *e);
bool config_set(struct config *c, const char *key, const char *value, struct err *e);
/* Copies the keys that can be reloaded. Returns the names of the others that differ. */
void config_reload(struct config *running, const struct config *fresh,
	struct strv *ret_need_restart);
int64_t config_run_lease(const struct config *c); /* seconds, not below 'lease' */
/* The store is an address such as postgresql://…, not a file. */
bool config_store_is_server(const char *store);
char *config_store_shown(const char *store); /* without the password; caller frees */
/* Prints the format of the file; passwords are replaced. */
void config_print(const struct config *c, FILE *out);
