/* SPDX-License-Identifier: Apache-2.0 */
/* Serves one daemon: executes its requests, keeps their results until they are acknowledged. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct net_server;
struct sd_event;

struct net_server_options {
	int listen;             /* borrowed */
	const char *state_dir;  /* of the artifact cache; borrowed until net_server_new() returns */
	bool private_copies;    /* see struct artifact_cache_options */
	uid_t client;           /* the uid that may connect, in addition to root */
	usec_t linger;          /* the loop ends after this time without a daemon; 0: never */
};
bool net_server_new(struct sd_event *ev /* borrowed */, const struct net_server_options *o, struct net_server **ret, struct err *e);
void net_server_free(struct net_server *s); /* gives up unfinished requests */
AUTO_DEFINE(net_server);
