/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds the work that is thrown away when bulks give way to due runs: SQLite has one writer, and a bulk is one transaction,
 * so a bulk gives way by a rollback and begins again later.
 */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct bulk_credit {
	usec_t credit, at; /* CPU time that may be thrown away, as of 'at' (monotonic); at 0: never used */
	usec_t began;      /* the batch in progress: the CPU time of the writer then */
};

void bulk_credit_begin(struct bulk_credit *c, usec_t now /* monotonic */, usec_t cpu /* of the thread */); /* a batch begins */
/* Whether the batch may be given up. If it may, its CPU time is charged. */
bool bulk_credit_spend(struct bulk_credit *c, usec_t cpu);
