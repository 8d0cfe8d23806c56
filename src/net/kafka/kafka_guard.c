/* SPDX-License-Identifier: Apache-2.0 */
/* Connects sockets of librdkafka to allowed addresses only. */
#include "net/kafka/kafka_guard.h"
#include "base/text.h"
#include "core/target/address_guard.h"
#include "net/peer_address.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void kafka_guard_init(struct kafka_guard *g, const char *allow)
{
	*g = (struct kafka_guard){.allow = allow ? xstrdup(allow) : NULL};
	pthread_mutex_init(&g->lock, NULL);
}

void kafka_guard_done(struct kafka_guard *g)
{
	free(g->allow);
	pthread_mutex_destroy(&g->lock);
}

int kafka_guard_connect(int fd, const struct sockaddr *addr, int len, const char *broker, void *guard)
{
	struct kafka_guard *g = guard;
	char why[KAFKA_GUARD_TEXT];

	(void)broker;
	if (!peer_address_allowed(addr, g->allow, why, sizeof(why))) {
		pthread_mutex_lock(&g->lock);
		memcpy(g->refused, why, sizeof(why));
		pthread_mutex_unlock(&g->lock);
		return EACCES;
	}
	/* librdkafka waits for a connection that is in progress */
	return connect(fd, addr, (socklen_t)len) < 0 && errno != EINPROGRESS ? errno : 0;
}

bool kafka_guard_refused(struct kafka_guard *g, char ret[KAFKA_GUARD_TEXT])
{
	pthread_mutex_lock(&g->lock);
	memcpy(ret, g->refused, sizeof(g->refused));
	pthread_mutex_unlock(&g->lock);
	return ret[0] != '\0';
}
