/* SPDX-License-Identifier: Apache-2.0 */
/* Runs libcurl transfers on an sd-event loop, several at a time. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct sd_event;
struct transfers;

/* One transfer, embedded in the structure of its user. */
struct transfer {
	void *easy; /* CURL *; owned; made by the user, freed by transfer_done() */
	/*
	 * Called from the loop when the transfer has ended, with a CURLcode. The transfer has been
	 * removed and may be freed.
	 */
	void (*on_end)(struct transfer *t, int result);
	struct transfers *all; /* borrowed; NULL: not started */
	char error[256];       /* libcurl's description of the error; empty: none */
	struct transfer *next, **at; /* in the list of 'all' */
};

/* All transfers of one object share their open connections; those of two objects do not. */
bool transfers_new(struct sd_event *ev /* borrowed */, struct transfers **ret, struct err *e);
void transfers_free(struct transfers *all); /* ends unfinished transfers without on_end() */
AUTO_DEFINE(transfers);

/* Makes 'easy', or takes that of an earlier transfer; its options are unset. */
bool transfer_open(struct transfer *t, struct transfers *all, struct err *e);
/* The other options of 'easy' are set already. False: libcurl refuses them. */
bool transfer_start(struct transfer *t, struct transfers *all);
/*
 * The HTTP status of the response, 0 if there is none; the time that the server asks to wait (Retry-After), at most a
 * day, 0 if it asks for none.
 */
int transfer_status(const struct transfer *t, usec_t *ret_retry_after);
void transfer_done(struct transfer *t); /* ends it without on_end(); frees 'easy' */
void transfer_give_back(struct transfer *t, struct transfers *all); /* the same, but keeps 'easy' for transfer_open() */
