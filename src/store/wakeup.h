/* SPDX-License-Identifier: Apache-2.0 */
/* When a claim can find runs, and whether other nodes are notified. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct query;
struct store;

/* The time of the next claim, kept between batches. */
struct claim_wakeup {
	bool known;     /* false: the lanes must be read */
	usec_t at;      /* nothing can be claimed before */
	bool full;      /* some runs wait for a free slot of their queue or owner: the end of a run permits a claim */
};

/*
 * An operation that queues a run calls wakeup_claim_by() with the time it is due. After an
 * operation without a phase (op_private.h) the lanes are read again, so it need not call this.
 */
void wakeup_claim_by(struct store *s, usec_t due_at);
void wakeup_claim_unknown(struct store *s); /* the lanes must be read before the next claim */
/*
 * A drained node claims nothing, also if runs are due. The command that ends the drain makes the
 * node read the lanes again.
 */
void wakeup_claim_drained(struct store *s);
bool wakeup_claim_read(struct store *s, struct query *lanes);

/* Notifies other nodes after the commit; later, if they were notified a moment ago. */
void wakeup_peers(struct store *s);
/* For clients that follow events through other nodes: at most once a second, if nothing else notifies. */
void wakeup_peers_of_events(struct store *s);
/*
 * Asks for the notification of this batch, if there is one, after the commit. 'started': the batch
 * has started runs.
 */
void wakeup_peers_send(struct store *s, bool started);
/* The commit of this batch failed, or its reply was lost: the notification may be lost, too, and is repeated. */
void wakeup_peers_lost(struct store *s);
