/* SPDX-License-Identifier: Apache-2.0 */
/* Permitted range of each cron field; private to the cron files. */
#pragma once
#include "core/time/cron.h"

struct cron_range {
	int min, max;
	int cycle;                /* values after max start again at min */
	const char *const *names; /* borrowed; the first is 'first_name' */
	int first_name, name_count;
	int hash_min, hash_max;   /* default range of H */
	bool marks;               /* '?' is allowed */
};
extern const struct cron_range cron_ranges[CRON_FIELD_MAX];
