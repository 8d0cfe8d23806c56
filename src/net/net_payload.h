/* SPDX-License-Identifier: Apache-2.0 */
/* The variable part of a request to jobsched-net. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

#define NET_TEXTS_MAX 128
#define NET_PAYLOAD_MAX ((size_t)4 << 20)

struct net_payload {
	char *data;                      /* owned; the texts and the body are in it */
	const char *texts[NET_TEXTS_MAX];
	size_t n;
	const char *body;
	size_t body_len;
};
bool net_payload_encode(const char *const *texts, size_t n, const void *body, size_t len, struct buf *ret, struct err *e);
/* The same as a sealed memfd. -1: see *e */
int net_payload_memfd(
	const char *const *texts, size_t n, const void *body, size_t len, struct err *e);
bool net_payload_read(struct net_payload *ret, int fd, struct err *e); /* a sealed memfd only */
bool net_payload_copy(struct net_payload *ret, const void *data, size_t len, struct err *e);
void net_payload_done(struct net_payload *p);
