/* SPDX-License-Identifier: Apache-2.0 */
/* Exports the spans of runs and attempts through jobsched-net, as OTLP over HTTP in JSON. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stddef.h>

struct attempt;
struct err;
struct metrics;
struct net_client;
struct sd_event;
struct spans;
struct trace;

struct spans_options {          /* everything is borrowed and outlives the exporter */
	struct net_client *net;
	struct metrics *metrics;
	const struct clock *clock;
	const char *url;        /* /v1/traces is added if it has no path */
	const char *node_name;
	size_t queue;           /* spans that wait; further ones are dropped */
	usec_t interval;        /* between two exports */
};
bool spans_new(struct sd_event *ev, const struct spans_options *o, struct spans **ret, struct err *e);
void spans_free(struct spans *s); /* spans that wait are lost */
AUTO_DEFINE(spans);

/* Neither blocks. */
void spans_add_attempt(struct spans *s, const struct run *r, const struct trace *t, const char *span, const struct attempt *a);
void spans_add_run(struct spans *s, const struct run *r, const struct trace *t, enum run_state state, const char *reason,
	const struct attempt *last);
size_t spans_waiting(const struct spans *s /* NULL: 0 */);
