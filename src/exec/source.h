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

/* Closing alone does not take it out of the set while a child that is being launched has a copy. */
static inline void source_close(int ep, struct source *s)
{
	if (s->fd < 0)
		return;
	epoll_ctl(ep, EPOLL_CTL_DEL, s->fd, NULL);
	close(s->fd);
	s->fd = -1;
}
