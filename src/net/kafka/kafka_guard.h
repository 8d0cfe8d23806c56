/* SPDX-License-Identifier: Apache-2.0 */
/* Checks each address of a broker that librdkafka connects to; used by its threads. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

struct sockaddr;

#define KAFKA_GUARD_TEXT 160

struct kafka_guard {
	char *allow; /* owned; http-allow; NULL: none */
	pthread_mutex_t lock;
	char refused[KAFKA_GUARD_TEXT]; /* the last refused address with the reason; empty: none */
};
void kafka_guard_init(struct kafka_guard *g, const char *allow /* copied */);
void kafka_guard_done(struct kafka_guard *g);

/* librdkafka's connect_cb. Returns 0 or an errno. */
int kafka_guard_connect(int fd, const struct sockaddr *addr, int len, const char *broker, void *guard);
/* Whether an address was refused; the text says which. */
bool kafka_guard_refused(struct kafka_guard *g, char ret[KAFKA_GUARD_TEXT]);
