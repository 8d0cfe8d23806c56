/* SPDX-License-Identifier: Apache-2.0 */
/* The time specifications of at(1): 'noon tomorrow', '10:15 + 2 days', and -t [[CC]YY]MMDDhhmm[.SS]. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct err;
struct zone;

#define AT_TIME_TEXT_MAX 1024 /* bytes of all words together */

struct at_time_context {
	const struct zone *zone; /* of the caller */
	int64_t now;             /* UTC seconds */
};

enum at_time_result {
	AT_TIME_OK,
	AT_TIME_GARBLED, /* the message says where, in the words of Debian's at */
	AT_TIME_PAST     /* a valid time before the current minute */
};

/*
 * Parses the words of a command line. The result is in UTC seconds, a whole minute. It equals that
 * of Debian's at, with these exceptions: times after 2199 are refused, and a time on the day after
 * a change of the clock keeps its wall clock time.
 */
enum at_time_result at_time_parse(const struct at_time_context *c, char *const *words, size_t n,
	int64_t *ret, struct err *e);

/* The argument of -t. AT_TIME_GARBLED also if there is no such wall clock time. */
enum at_time_result at_time_posix(const struct at_time_context *c, const char *text, int64_t *ret);
