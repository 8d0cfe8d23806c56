/* SPDX-License-Identifier: Apache-2.0 */
/* What the service manager is told, where there is one. */
#pragma once
#include "base/clock.h"

void manager_tell(const char *words); /* "READY=1" … */
void manager_tell_reloading(void);
usec_t manager_watchdog(void); /* the service is killed when it is silent for longer; 0: never */
void manager_ping(void);       /* the loop runs; does not wait for the manager */
