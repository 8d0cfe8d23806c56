/* SPDX-License-Identifier: Apache-2.0 */
/* Machine load figures and the 'when' conditions on them. */
#pragma once
#include "core/job/policy.h"

struct strv;

/* Why jobs of crontabs do not run; NULL: they run. The texts are static. */
struct table_gate {
	bool unknown;        /* the tables were not read yet: the jobs wait */
	const char *cron;    /* of all tables but anacrontab */
	const char *anacron;
};

/* Thousandths of a load average, or of a percent of pressure. */
struct machine_figures {
	int64_t thousandths[MACHINE_FIGURE_MAX]; /* negative: unknown */
	struct table_gate tables;
};
#define MACHINE_UNKNOWN ((struct machine_figures){.thousandths = {-1, -1, -1, -1}})
_Static_assert(MACHINE_FIGURE_MAX == 4, "MACHINE_UNKNOWN has one for each");

/* Parse the contents of /proc/pressure/… and /proc/loadavg; -1: no figure. */
int64_t machine_conditions_parse_pressure(const char *text);
int64_t machine_conditions_parse_load(const char *text);

/* Whether all conditions hold. A condition whose figure is unknown does not hold. */
bool machine_conditions_hold(const struct machine_figures *m, const struct strv *when /* checked */);
bool machine_conditions_known(const struct machine_figures *m, const struct strv *when /* checked */); /* whether all their figures are known */
