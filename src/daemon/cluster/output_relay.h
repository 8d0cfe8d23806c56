/* SPDX-License-Identifier: Apache-2.0 */
/* Reads output that another node keeps, through the store, and hands over what this one keeps. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct relay;
struct relays;
struct sd_event;
struct store_thread;

struct relays_options {               /* everything is borrowed and outlives it */
	struct store_thread *store;
	const char *node_id;
	int output_dir;
	bool (*has_peers)(void *arg);
	void (*look)(void *arg);      /* look what has changed in the store; relays_stir() follows */
	void *arg;
};

bool relays_new(struct sd_event *ev, const struct relays_options *o, struct relays **ret, struct err *e);
void relays_stop(struct relays *r);   /* nothing more is given to the store */
void relays_free(struct relays *r);   /* after the store threads have ended; nobody may be reading */
AUTO_DEFINE(relays);
void relays_stir(struct relays *r);   /* others may have asked, or answered */

struct relay_wish {
	int64_t run, attempt;
	const char *ran_on;           /* the engine that ran it, or runs it */
	int64_t from, tail;           /* first offset, but no more than so many bytes of the end; tail -1: all */
	bool follow;                  /* until relay_unfollow() */
};

enum relay_state {
	RELAY_ASKED,  /* nothing is known yet */
	RELAY_HERE,   /* it is this node that has it */
	RELAY_FLOWS,
	RELAY_DONE,   /* all of it was read */
	RELAY_LOST,   /* there will be no more: relay_why() */
};

/* on_change: on the loop, when the state is another one or there is more to read; may free the relay. */
struct relay *relay_ask(struct relays *r, const struct relay_wish *w, void (*on_change)(void *arg), void *arg);
void relay_free(struct relay *r);
AUTO_DEFINE(relay);
void relay_unfollow(struct relay *r);  /* the attempt is over: what is there is all */
enum relay_state relay_state(const struct relay *r);
const struct err *relay_why(const struct relay *r);
void relay_size(const struct relay *r, int64_t *ret_total, int64_t *ret_dropped); /* once it flows */
size_t relay_read(struct relay *r, char *out, size_t max); /* 0: nothing now */
