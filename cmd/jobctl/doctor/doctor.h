/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of an installation: what is wrong, and the command that mends it. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/file/paths.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ctl;

enum doctor_severity { DOCTOR_NOTE, DOCTOR_WARNING, DOCTOR_ERROR, DOCTOR_SEVERITY_MAX };

struct doctor {
	struct ctl *c;
	bool system;        /* the installation of the system, else that of the user */
	struct paths paths;
	json_t *status;     /* owned: answer of the daemon; NULL: it does not answer */
	struct err down;    /* why it does not answer */
	struct buf config;  /* text of 'jobschedd --print-config'; empty: it failed */
	struct buf config_problem; /* what that command said */
	json_t *findings;   /* owned: of the check that runs */
	char *skipped;      /* owned: why the check did not apply; NULL: it did */
};
bool doctor_open(struct doctor *d, struct ctl *c, struct err *e);
void doctor_done(struct doctor *d);

/* Adds a finding; 'command' is what to type. */
void doctor_find(struct doctor *d, enum doctor_severity severity, const char *command,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void doctor_skip(struct doctor *d, const char *why);
const char *doctor_severity_name(enum doctor_severity s);
/* The value of a key of the configuration; NULL: not set or unknown. Caller frees. */
char *doctor_config(const struct doctor *d, const char *key);
/*
 * Runs a program for at most 5 seconds, without standard input; both outputs are read, up to 64
 * KiB. Returns its exit code, or -1 if it could not run or was ended.
 */
int doctor_run(const char *const argv[], struct buf *out);
const char *doctor_daemon_program(void); /* its path if it is installed, else its name */
bool doctor_has_systemd(void);
/* The command that installs a package on this distribution. */
const char *doctor_install(const char *package);

/* Conditions of a check. */
#define DOCTOR_DAEMON 1u  /* the daemon answers */
#define DOCTOR_SYSTEM 2u  /* system installation */
#define DOCTOR_USER 4u    /* user installation */
#define DOCTOR_SYSTEMD 8u /* systemd runs */

struct doctor_check {
	const char *name; /* the last row has NULL */
	const char *help;
	unsigned needs;
	void (*run)(struct doctor *d);
};
extern const struct doctor_check doctor_checks[];

/* The checks, by file. */
typedef void doctor_fn(struct doctor *d);
doctor_fn doctor_check_daemon, doctor_check_versions, doctor_check_spawner, doctor_check_net, doctor_check_archive, doctor_check_store,
	doctor_check_integrity, doctor_check_cluster, doctor_check_freeze, doctor_check_jobs, doctor_check_dead,
	doctor_check_notices, doctor_check_crontabs, doctor_check_mail;
doctor_fn doctor_check_calls;
doctor_fn doctor_check_config, doctor_check_permissions, doctor_check_disk, doctor_check_clock, doctor_check_zoneinfo,
	doctor_check_cgroup, doctor_check_linger, doctor_check_units, doctor_check_warrants,
	doctor_check_certificates;
