/* SPDX-License-Identifier: Apache-2.0 */
/* Delays and log lines towards a peer that fails or hangs up repeatedly. */
#pragma once
#include "base/clock.h"
#include "base/log.h"

/* A connection that has lasted this long is stable: the next failure counts as the first. */
#define BACKOFF_STABLE (10 * USEC_SEC)

/* Times are boot times. Initialise 'min' and 'max'; the other members start as 0. */
struct backoff {
	usec_t min, max;   /* of the delay, which doubles with each failure */
	unsigned failures; /* since the last stable connection */
	unsigned unlogged; /* failures since the last line in the log */
	usec_t up_since;   /* 0: not connected */
	struct log_repeat repeat;
};

void backoff_connected(struct backoff *b, usec_t now);

/* Counts a failure. Returns the delay before the next attempt; 0 for the first loss of a connection. */
usec_t backoff_failed(struct backoff *b, usec_t now);

/*
 * The level of the line about the last failure: a warning for the first and then once a minute, debug for the others. *ret_n is the
 * number of failures that this line stands for.
 */
enum log_level backoff_log_level(struct backoff *b, usec_t now, unsigned *ret_n);

/* The connection is stable. Returns the number of failures before it. */
unsigned backoff_stable(struct backoff *b);
