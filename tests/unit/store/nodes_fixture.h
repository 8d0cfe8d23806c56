/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the tests with several nodes: a second node, leases, the leader's work. */
#pragma once
#include "unit/store/store_suite.h"

#define OTHER "node-two-engine"
#define TTL (60 * USEC_SEC) /* no lease ends by itself */

void open_node(struct store *s, const char *node, const char *name);
int64_t renew(struct store *s, const char *node, const char *name);        /* the term if it leads, else 0 */
void lead_once(struct store *s, const char *node, int64_t term);
struct run *run_elsewhere(struct store *s);                                /* of a job, started by OTHER; caller frees */

/* Functions that let time pass. */
void lease_ends(const char *where, const char *node);
void leader_lease_ends(const char *where);

struct op *op_lease(const char *node, const char *name, bool stands);
struct op *op_lead(const char *node, int64_t term);
struct op *op_plan_on(const char *node);                                   /* its own segments, one run for each due job */
