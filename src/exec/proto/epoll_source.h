/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptor with a callback in the spawner's epoll set. The structure is embedded in its owner. */
#pragma once
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

struct epoll_source {
	int fd; /* owned; -1: none */
	void (*on_ready)(struct epoll_source *s, uint32_t events);
	int watched; /* descriptor of its epoll set plus one; 0: in none */
};

#define CONTAINER_OF(s, type, member) ((type *)((char *)(s) - offsetof(type, member)))

static inline int epoll_source_watch(int ep, struct epoll_source *s, int op, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	s->watched = op == EPOLL_CTL_DEL ? 0 : ep + 1;
	return epoll_ctl(ep, op, s->fd, &ev);
}

/*
 * Removes the descriptor from the epoll set before closing it. A child that was just cloned may
 * still have a duplicate; with close() alone the kernel would keep the entry, which points to freed
 * memory.
 */
static inline void epoll_source_close(struct epoll_source *s)
{
	if (s->fd >= 0 && s->watched)
		epoll_ctl(s->watched - 1, EPOLL_CTL_DEL, s->fd, NULL);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->watched = 0;
}
