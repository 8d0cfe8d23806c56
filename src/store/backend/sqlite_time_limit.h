/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts the statements of a SQLite connection when a time limit is over. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct sqlite3;
struct sqlite_time_limit;

/*
 * Starts a thread, because SQLite calls no progress handler while it checks a B-tree. The connection
 * must stay open until sqlite_time_limit_end(). Without resources for a thread there is no limit.
 */
struct sqlite_time_limit *sqlite_time_limit_start(struct sqlite3 *h, usec_t limit);
bool sqlite_time_limit_end(struct sqlite_time_limit *l); /* frees; returns whether statements were interrupted */
