/* SPDX-License-Identifier: Apache-2.0 */
/* Clock interface for wall time and boot time; tests can replace it. */
#pragma once
#include <stdint.h>

typedef int64_t usec_t; /* microseconds; instants are UTC since 1970 */

#define USEC_SEC INT64_C(1000000)
#define USEC_MSEC INT64_C(1000)
#define USEC_MIN (60 * USEC_SEC)
#define USEC_HOUR (60 * USEC_MIN)
#define USEC_DAY (24 * USEC_HOUR)
#define USEC_NEVER INT64_MAX
#define USEC_LAST INT64_C(7258118399000000) /* 2199-12-31T23:59:59Z, the last instant that can be scheduled */

struct clock {
	usec_t (*realtime)(void *arg);
	usec_t (*boottime)(void *arg); /* counts suspend, never steps */
	void *arg;
};

extern const struct clock clock_system;

static inline usec_t clock_now(const struct clock *c)
{
	return c->realtime(c->arg);
}

static inline usec_t clock_boot(const struct clock *c)
{
	return c->boottime(c->arg);
}
