/* SPDX-License-Identifier: Apache-2.0 */
/* What one user may take of the daemon, and what it is called. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct request;

/* Takes a submission out of the caller's bucket; ERR_LIMIT when it is empty. */
bool peer_take_submission(struct request *r, struct err *e);
void peer_charge(struct request *r, size_t n); /* more of the same request; the bucket may go below zero */
int64_t peer_store_limit(const struct request *r); /* bytes that rows of the owner may take; 0: any number */
int64_t peer_jobs_limit(const struct request *r); /* live jobs the owner may have; 0: any number */

/* The owner's name as known; NULL: look it up with peer_lookup() off the loop, then tell peer_named(). */
const char *peer_name(struct request *r);
bool peer_lookup(uint32_t uid, bool user_mode, char **ret, struct err *e); /* may take long; any thread */
void peer_named(struct request *r, const char *name);

/* The name of who asks, which in a daemon of one user may be root; NULL: not known. */
const char *peer_who(const struct request *r);
bool peer_is(const struct request *r, const char *ref); /* by his name or his uid */
void peer_who_is(struct request *r, const char *name);
