/* SPDX-License-Identifier: Apache-2.0 */
/* Load figures of the machine, read at most once a second. */
#pragma once
#include "base/clock.h"
#include "core/decide/machine_conditions.h"
#include <stdint.h>

struct machine_load {
	const char *root;       /* borrowed: directory with loadavg and pressure/; NULL: /proc */
	usec_t read_at;         /* CLOCK_BOOTTIME; 0: never */
	struct machine_figures now;
};

/* Figures at most one second old. A figure that cannot be read is -1. */
const struct machine_figures *machine_load_read(struct machine_load *m, usec_t boottime);
int64_t machine_load_cores(void); /* CPUs that this process may use; at least 1 */
