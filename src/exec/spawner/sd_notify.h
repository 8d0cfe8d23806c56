/* SPDX-License-Identifier: Apache-2.0 */
/* What the service manager is told, where there is one. */
#pragma once
#include "base/clock.h"

void sd_notify_send(const char *words); /* "READY=1" … */
void sd_notify_reloading(void);
usec_t sd_notify_watchdog_interval(void); /* the service is killed when it is silent for longer; 0: never */
void sd_notify_watchdog(void);       /* the loop runs; does not wait for the manager */
