/* SPDX-License-Identifier: Apache-2.0 */
/* Serves output that this node keeps to other nodes that requested it, through the store. */
#pragma once
#include "base/auto.h"
#include "store/read/list/list_relays.h"
#include <stdbool.h>

struct err;
struct relay_list;
struct output_relay_serve;
struct sd_event;
struct store_thread;

bool output_relay_serve_new(struct sd_event *ev, struct store_thread *store, const char *node_id, int output_dir /* all borrowed */,
	struct output_relay_serve **ret, struct err *e);
void output_relay_serve_stop(struct output_relay_serve *s); /* submits no more operations */
void output_relay_serve_free(struct output_relay_serve *s); /* after the store threads have ended */
AUTO_DEFINE(output_relay_serve);

void output_relay_serve_list(struct output_relay_serve *s, const struct relay_list *l); /* all open requests to this node */
