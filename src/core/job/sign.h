/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life and progress that a command gives while it runs. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

/*
 * A sign is one line. Its forms are
 *   jobsched:progress=PERCENT TEXT   both are optional
 *   STATUS=TEXT, WATCHDOG=1, EXTEND_TIMEOUT_USEC=N   as in sd_notify(3)
 */
#define SIGN_LINE_MAX 512 /* bytes; the rest of a longer line is ignored */
#define SIGN_TEXT_MAX 200 /* bytes of a text, with its NUL */
#define SIGN_PERCENT_NONE (-1)

struct sign {
	int percent;              /* 0 to 100; SIGN_PERCENT_NONE: not given */
	bool has_text;
	char text[SIGN_TEXT_MAX]; /* valid UTF-8 without control characters */
	usec_t extend;            /* the next sign may take this long; 0: not given */
};
/* False: the line is not a sign. */
bool sign_parse(const char *line, size_t len, struct sign *ret);
/* Copies a text: control characters become spaces, invalid bytes '?', and it is cut between two characters. */
void sign_text(const char *from, size_t len, char to[SIGN_TEXT_MAX]);

/* Progress of an attempt, as the last sign gave it. */
struct progress {
	int percent;              /* SIGN_PERCENT_NONE: not given */
	char text[SIGN_TEXT_MAX];
	usec_t at;                /* of the sign, UTC; 0: the command has given no progress */
};
/*
 * Estimates when the attempt ends, from its progress and from the usual duration of earlier runs
 * (0: unknown). Progress counts more the further it is. 0: there is no basis for an estimate, or
 * the estimated time has passed.
 */
usec_t progress_estimate(const struct progress *p, usec_t started_at, usec_t usual, usec_t now);
