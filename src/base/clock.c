/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's real-time and boot-time clocks. */
#include "base/clock.h"
#include <time.h>

static usec_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (usec_t)ts.tv_sec * USEC_SEC + ts.tv_nsec / 1000;
}

static usec_t system_realtime(void *arg)
{
	(void)arg;
	return read_clock(CLOCK_REALTIME);
}

static usec_t system_boottime(void *arg)
{
	(void)arg;
	return read_clock(CLOCK_BOOTTIME);
}

const struct clock clock_system = {system_realtime, system_boottime, 0};
