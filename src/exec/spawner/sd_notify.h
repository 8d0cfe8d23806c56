/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications to the service manager, without libsystemd. */
#pragma once
#include "base/clock.h"

/* For example "READY=1"; does nothing without NOTIFY_SOCKET. */
void sd_notify_send(const char *words);
void sd_notify_reloading(void);
/* WatchdogSec=: the service is killed after this time without a ping; 0: no watchdog. */
usec_t sd_notify_watchdog_interval(void);
void sd_notify_watchdog(void);       /* a watchdog ping; does not block */
