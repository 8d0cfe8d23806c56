/* SPDX-License-Identifier: Apache-2.0 */
/* Timer on the wall clock that reports changes of the clock. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>

struct alarm;
struct err;
struct sd_event;

/* Called once at the instant, and with 'clock_set' whenever the clock was set. */
typedef void alarm_fn(bool clock_set, void *arg);

bool alarm_new(struct sd_event *ev, alarm_fn *fn, void *arg, struct alarm **ret, struct err *e);
void alarm_free(struct alarm *a);
AUTO_DEFINE(alarm);

void alarm_set(struct alarm *a, usec_t at); /* USEC_NEVER: no instant; replaces the previous one */
