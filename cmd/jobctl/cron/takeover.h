/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that hand the crontabs over from cron to jobschedd and back. Each can be repeated. */
#pragma once
#include "base/text.h"
#include <stdbool.h>

struct err;

/* A unit of systemd that runs crontabs. */
struct takeover_unit {
	const char *name;
	bool stop; /* it is stopped as well; a running anacron is left to finish */
};
extern const struct takeover_unit takeover_units[];
extern const size_t takeover_units_count;

bool takeover_has_systemd(void);
bool takeover_unit_exists(const char *name); /* installed, masked or not */
bool takeover_unit_masked(const char *name);

/* Sets 'crontabs' in the configuration; *ret_before gets the old word, caller frees; NULL: not set. */
bool takeover_config_set(const char *config, const char *word, char **ret_before, struct err *e);
bool takeover_config_get(const char *config, char **ret, struct err *e);

/*
 * The record beside the configuration, which belongs to root: the mode before the takeover, and the
 * masked units. It is written before the first unit is masked.
 */
struct takeover_record {
	char *mode;        /* owned; NULL: there was none */
	struct strv units;
};
void takeover_record_done(struct takeover_record *r);
char *takeover_record_path(const char *config);
bool takeover_record_read(const char *config, struct takeover_record *ret, bool *ret_there, struct err *e);
bool takeover_record_write(const char *config, const struct takeover_record *r, struct err *e);

bool takeover_systemctl(struct err *e, const char *const *words); /* NULL-terminated, without "systemctl" */
/* cron runs @reboot lines if it is started without these files; they were already run or are not wanted */
void takeover_mark_boot(void);
bool takeover_package_installed(void); /* jobsched-cron, which replaces cron */
void takeover_avoid_minute(void);      /* waits if the next minute is near, so that no line runs twice or not at all */
