/* SPDX-License-Identifier: Apache-2.0 */
/* Delays and log lines towards a peer that fails or hangs up repeatedly. */
#include "base/backoff.h"

#define DOUBLINGS_MAX 16

void backoff_connected(struct backoff *b, usec_t now)
{
	b->up_since = now;
}

unsigned backoff_stable(struct backoff *b)
{
	unsigned n = b->failures;

	b->failures = b->unlogged = 0;
	b->repeat = (struct log_repeat){};
	return n;
}

usec_t backoff_failed(struct backoff *b, usec_t now)
{
	bool first;
	usec_t delay;

	if (b->up_since && now - b->up_since >= BACKOFF_STABLE)
		backoff_stable(b);
	first = b->up_since && b->failures == 0;
	b->up_since = 0;
	delay = b->min << (b->failures < DOUBLINGS_MAX ? b->failures : DOUBLINGS_MAX);
	b->failures++;
	b->unlogged++;
	return first ? 0 : delay < b->max ? delay : b->max;
}

enum log_level backoff_log_level(struct backoff *b, usec_t now, unsigned *ret_n)
{
	enum log_level level = log_repeat(&b->repeat, now);

	*ret_n = b->unlogged;
	if (level != LOG_LEVEL_DEBUG)
		b->unlogged = 0;
	return level;
}
