/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the output of a run that another node keeps; the store carries requests and parts. */
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

struct output_relays_options {               /* all pointers are borrowed and outlive the relays */
	struct store_thread *store;
	const char *node_id;
	int output_dir;
	bool (*has_peers)(void *arg);
	void (*look)(void *arg);      /* polls the store for changes; output_relays_recheck() follows */
	void *arg;
};

bool output_relays_new(struct sd_event *ev, const struct output_relays_options *o, struct output_relays **ret, struct err *e);
void output_relays_stop(struct output_relays *r);   /* submits no more operations */
void output_relays_free(struct output_relays *r);   /* after the store threads have ended, with no reader left */
AUTO_DEFINE(output_relays);
void output_relays_recheck(struct output_relays *r);   /* other nodes may have sent requests or parts */

struct output_relay_request {
	int64_t run, attempt;
	const char *ran_on;           /* id of the engine that ran it, or runs it */
	int64_t from, tail;           /* first offset; at most 'tail' bytes from the end, -1: all */
	bool follow;                  /* until output_relay_unfollow() */
};

enum output_relay_state {
	RELAY_ASKED,  /* the request was sent */
	RELAY_HERE,   /* this node has the output itself */
	RELAY_FLOWS,
	RELAY_DONE,   /* all output was read */
	RELAY_LOST,   /* no more will come: output_relay_error() */
};

/* on_change: called on the loop when the state has changed or there is more to read; it may free the relay. */
struct output_relay *output_relay_open(struct output_relays *r, const struct output_relay_request *w, void (*on_change)(void *arg), void *arg);
void output_relay_free(struct output_relay *r);
AUTO_DEFINE(output_relay);
void output_relay_unfollow(struct output_relay *r);  /* the attempt has ended: read what is there, then stop */
enum output_relay_state output_relay_state(const struct output_relay *r);
const struct err *output_relay_error(const struct output_relay *r);
void output_relay_size(const struct output_relay *r, int64_t *ret_total, int64_t *ret_dropped); /* once it flows */
size_t output_relay_read(struct output_relay *r, char *out, size_t max); /* 0: nothing to read now */
