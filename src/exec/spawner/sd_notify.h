/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications to the service manager, without libsystemd. */
#pragma once
#include "base/clock.h"

void sd_notify_send(const char *words); /* for example "READY=1"; does nothing without NOTIFY_SOCKET */
void sd_notify_reloading(void);
usec_t sd_notify_watchdog_interval(void); /* WatchdogSec=: the service is killed after this time without a ping; 0: no watchdog */
void sd_notify_watchdog(void);       /* a watchdog ping; does not block */
