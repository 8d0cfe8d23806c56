/* SPDX-License-Identifier: Apache-2.0 */
/* Reads how busy the machine is, no more often than it changes and only when somebody asks. */
#pragma once
#include "base/clock.h"
#include "core/decide/machine_conditions.h"
#include <stdint.h>

struct machine_load {
	const char *root;       /* borrowed: where loadavg and pressure are; NULL: /proc */
	usec_t read_at;         /* CLOCK_BOOTTIME; 0: never */
	struct machine_figures now;
};

/* As of the last second at most. What cannot be read is unknown. */
const struct machine_figures *machine_load_read(struct machine_load *m, usec_t boottime);
int64_t machine_load_cores(void); /* that this process may use; at least 1 */
