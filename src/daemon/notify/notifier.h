/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the notices that wait in the store. Each is sent at least once, and its result is recorded. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;
struct metrics;
struct net_client;
struct notifier;
struct sd_event;
struct spawner_link;
struct store_thread;

struct notifier_options {               /* all pointers are borrowed and outlive the notifier */
	const struct clock *clock;
	struct store_thread *store;
	struct net_client *net;
	const struct config *config;
	const char *node_id, *node_name;
	bool shared;                    /* several users are served: the slots are divided between owners */
	int output_dir;                 /* descriptor of the spawner's output directory */
	struct metrics *metrics;        /* NULL: nothing is counted */
	struct spawner_link *spawner;   /* runs the commands of mail and exec notices */
};

bool notifier_new(struct sd_event *ev, const struct notifier_options *o, struct notifier **ret, struct err *e);
void notifier_free(struct notifier *n);
AUTO_DEFINE(notifier);

/* Sets when the first waiting notice is due, as a batch reported it; USEC_NEVER: none waits. */
void notifier_set_next_due(struct notifier *n, usec_t next);
/* Takes due notices while there are free slots. Returns when to call again; USEC_NEVER: after the next event. */
usec_t notifier_pump(struct notifier *n);
void notifier_net_synced(struct notifier *n); /* jobsched-net has listed the webhooks that it still delivers, or is gone */
void notifier_set_output_dir(struct notifier *n, int fd /* borrowed */);
void notifier_stop(struct notifier *n); /* takes no more notices */
