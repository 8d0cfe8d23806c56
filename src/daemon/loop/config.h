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
	char *archive;    /* directory or s3://BUCKET/PREFIX; NULL: nothing is archived */
	int64_t output_archive; /* 1: output is archived, too */
	char *s3_endpoint, *s3_region; /* NULL: AWS; S3_REGION_DEFAULT */
	int64_t s3_addressing;  /* enum s3_addressing */
	char *s3_artifacts;     /* buckets of artifacts; NULL: none */
	char *machine_id_file;
	char *sendmail;         /* NULL: SENDMAIL_DEFAULT */
	char *http_allow;       /* addresses and networks; NULL: none */
	char *http_callback_url; /* NULL: there are no asynchronous calls */
	char *http_proxy;       /* URL; NULL: none */
	char *lambda_endpoint;  /* URL; NULL: AWS */
	char *lambda_functions; /* see core/target/lambda.h; NULL: none, in user mode all */
	char *webhook_key_file; /* NULL: webhooks are not signed */
	int64_t notice_slots;   /* notices sent at the same time */
	int64_t notice_retry;   /* seconds */
	char *admin_group;      /* NULL: ADMIN_GROUP_DEFAULT */
	int64_t crontabs;       /* enum config_crontabs */
	char *listen;           /* lines of ADDRESS:PORT; NULL: none */
	char *hosts;            /* names of this server; NULL: none */
	char *tls_certificate, *tls_key, *tls_client_ca; /* files; NULL: none */
	char *jwt_key_file, *jwt_audience, *jwt_issuer;  /* NULL: none */
	int64_t session_lifetime;                        /* seconds */
	int64_t requests_per_second, requests_burst;     /* of one token */
	char *allow_file, *deny_file; /* NULL: beside jobschedd.conf */
	int64_t metrics_jobs;     /* enum metric_job_choice */
	int64_t metrics_jobs_max;
	char *metrics_textfile;   /* NULL: none is written */
	int64_t metrics_textfile_interval; /* seconds */
	int64_t log_format;       /* enum log_format */
	char *otlp;               /* URL of the trace receiver; NULL: no spans are exported */
	int64_t otlp_queue;       /* spans that wait for export */
	int64_t otlp_interval;    /* seconds */
};

#define ADMIN_GROUP_DEFAULT "jobsched-admin"
#define S3_REGION_DEFAULT "us-east-1"
#define SENDMAIL_DEFAULT "/usr/sbin/sendmail"

/* off: not read; shadow: planned, and another cron daemon runs them; on: run. */
enum config_crontabs { CRONTABS_OFF, CRONTABS_SHADOW, CRONTABS_ON, CONFIG_CRONTABS_MAX };
extern const char *const config_crontabs_names[CONFIG_CRONTABS_MAX];

enum config_type {
	CONFIG_TEXT,
	CONFIG_LIST,  /* may be repeated; the values are lines of one text */
	CONFIG_NUMBER,
	CONFIG_SIZE,
	CONFIG_LEVEL,
	CONFIG_YES,   /* yes or no */
	CONFIG_TABLES, /* enum config_crontabs */
	CONFIG_WORD,  /* one of the words of the row; the number is its place */
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
	const char *words;   /* of CONFIG_WORD, separated by spaces */
};
extern const struct config_key config_keys[];
extern const size_t config_keys_count;

void config_init(struct config *c); /* sets the defaults */
void config_done(struct config *c);
/*
 * Unknown keys, sections and invalid values are errors that name the line. A missing file is an
 * error with 'must_exist'. The files in the directory PATH.d whose names end in '.conf' are read
 * first, in alphabetical order.
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
