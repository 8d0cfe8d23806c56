/* SPDX-License-Identifier: Apache-2.0 */
/* The audit trail on the loop: committed events go to the log and to those who follow, refused requests into the store. */
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
void audit_free(struct audit *a); /* no watch may be left */
AUTO_DEFINE(audit);

/* Where refusals are written; NULL: what is left to tell is told now, and nothing afterwards. */
void audit_set_store(struct audit *a, struct store_thread *store);

/* These are in the store now. */
void audit_committed(struct audit *a, const struct event_list *l);

/*
 * Somebody asked for a change and was refused. So many a minute of each user have a row of their own, the rest share
 * one, so that nobody can fill the disk by asking.
 */
void audit_refused(struct audit *a, const struct act *act, const struct err *why);
void audit_refused_op(struct audit *a, const struct op *op); /* the same for an operation, if it was refused */

void audit_wake_followers(struct audit *a); /* other nodes may have committed some: those who follow look */

/* Called after new events were committed; without an audit, never. */
struct audit_watch *audit_watch_new(struct audit *a, void (*fn)(void *arg), void *arg);
void audit_watch_free(struct audit_watch *w);
AUTO_DEFINE(audit_watch);
