/* SPDX-License-Identifier: Apache-2.0 */
/* Reads output that another node keeps, through the store, and hands over what this one keeps. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct output_relay;
struct output_relays;
struct sd_event;
struct store_thread;

struct output_relays_options {               /* everything is borrowed and outlives it */
	struct store_thread *store;
	const char *node_id;
	int output_dir;
	bool (*has_peers)(void *arg);
	void (*look)(void *arg);      /* look what has changed in the store; relays_stir() follows */
	void *arg;
};

bool output_relays_new(struct sd_event *ev, const struct output_relays_options *o, struct output_relays **ret, struct err *e);
void output_relays_stop(struct output_relays *r);   /* nothing more is given to the store */
void output_relays_free(struct output_relays *r);   /* after the store threads have ended; nobody may be reading */
AUTO_DEFINE(output_relays);
void output_relays_recheck(struct output_relays *r);   /* others may have asked, or answered */

struct output_relay_request {
	int64_t run, attempt;
	const char *ran_on;           /* the engine that ran it, or runs it */
	int64_t from, tail;           /* first offset, but no more than so many bytes of the end; tail -1: all */
	bool follow;                  /* until relay_unfollow() */
};

enum output_relay_state {
	RELAY_ASKED,  /* nothing is known yet */
	RELAY_HERE,   /* it is this node that has it */
	RELAY_FLOWS,
	RELAY_DONE,   /* all of it was read */
	RELAY_LOST,   /* there will be no more: relay_why() */
};

/* on_change: on the loop, when the state is another one or there is more to read; may free the relay. */
struct output_relay *output_relay_open(struct output_relays *r, const struct output_relay_request *w, void (*on_change)(void *arg), void *arg);
void output_relay_free(struct output_relay *r);
AUTO_DEFINE(output_relay);
void output_relay_unfollow(struct output_relay *r);  /* the attempt is over: what is there is all */
enum output_relay_state output_relay_state(const struct output_relay *r);
const struct err *output_relay_error(const struct output_relay *r);
void output_relay_size(const struct output_relay *r, int64_t *ret_total, int64_t *ret_dropped); /* once it flows */
size_t output_relay_read(struct output_relay *r, char *out, size_t max); /* 0: nothing now */
