/* SPDX-License-Identifier: Apache-2.0 */
/* Audit trail: logs events, records refusals, notifies followers. */
#pragma once
#include "base/auto.h"

struct act;
struct audit;
struct audit_watch;
struct clock;
struct err;
struct event_list;
struct op;
struct sd_event;
struct store_thread;

struct audit *audit_new(struct sd_event *ev, const struct clock *clock);
void audit_free(struct audit *a); /* all watches must have been freed */
AUTO_DEFINE(audit);

/*
 * The store for records of refusals; NULL: pending summaries are written now, and none afterwards.
 */
void audit_set_store(struct audit *a, struct store_thread *store);

/* Logs committed events. */
void audit_committed(struct audit *a, const struct event_list *l);

/*
 * Records that a change was refused. A limited number per user and minute get a row each; the rest
 * are summarised in one row, so that refused requests cannot fill the disk.
 */
void audit_refused(struct audit *a, const struct act *act, const struct err *why);
/* The same for an operation, if it was refused. */
void audit_refused_op(struct audit *a, const struct op *op);

void audit_wake_followers(struct audit *a); /* other nodes may have committed events */

/*
 * The callback is called after new events were committed. Without an audit (NULL) it is never
 * called.
 */
struct audit_watch *audit_watch_new(struct audit *a, void (*fn)(void *arg), void *arg);
void audit_watch_free(struct audit_watch *w);
AUTO_DEFINE(audit_watch);
