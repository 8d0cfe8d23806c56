/* SPDX-License-Identifier: Apache-2.0 */
/* Watches for settings of the database server that can lose acknowledged work, and for events that wait for a transaction. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct clock;
struct err;
struct sd_event;
struct store_outage;
struct store_risk;
struct store_thread;

bool store_risk_watch(struct sd_event *ev, struct store_thread *store /* borrowed */,
	const struct store_outage *outage /* borrowed */, const struct clock *clock /* borrowed */, struct store_risk **ret, struct err *e);
void store_risk_stop(struct store_risk *r); /* NULL is fine; reads under way are completed by the store thread */
void store_risk_free(struct store_risk *r);
AUTO_DEFINE(store_risk);

const char *store_risk_text(const struct store_risk *r); /* NULL: no risk is known, or r is NULL */
const char *store_risk_held(const struct store_risk *r); /* why event streams are behind; NULL: they are not, or r is NULL */
