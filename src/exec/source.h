/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor in the spawner's epoll set; embedded in what it belongs to. */
#pragma once
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

struct source {
	int fd; /* owned; -1: none */
	void (*on_ready)(struct source *s, uint32_t events);
};

#define SOURCE_OWNER(s, type, member) ((type *)((char *)(s) - offsetof(type, member)))

static inline int source_watch(int ep, struct source *s, int op, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	return epoll_ctl(ep, op, s->fd, &ev);
}

/* No other process has the descriptor, so closing it takes it out of the set. */
static inline void source_close(struct source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
