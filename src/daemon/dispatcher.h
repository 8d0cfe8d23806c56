/* SPDX-License-Identifier: Apache-2.0 */
/* Claims due runs while there is room, has them started, and records how each ended. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dispatcher;

struct dispatcher_counts {
	size_t in_flight;   /* claimed and running here */
	size_t room;        /* how many more may be claimed */
	bool spawner_up;
};
void dispatcher_counts(const struct dispatcher *d, struct dispatcher_counts *ret);

/* After the commit of a cancellation: ends the worker, if it is one of ours. */
void dispatcher_cancel(struct dispatcher *d, int64_t run, int64_t fence);
