/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about crontab entries that need the machine: programs, directories and clock changes. */
#pragma once
#include "core/time/schedule.h"

struct crontab;
struct crontab_entry;
struct zone;

/* Relative paths and programs that do not exist under the PATH of the entry. */
void crontab_check_program(const struct crontab *t, const struct crontab_entry *e, schedule_finding_fn *fn, void *arg);
/* Variables that a job cannot have, and addresses of MAILTO that are none. */
void crontab_check_environment(const struct crontab *t, const struct crontab_entry *e, schedule_finding_fn *fn, void *arg);
