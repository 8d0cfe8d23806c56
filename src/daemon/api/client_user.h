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
bool client_user_take_submission(struct request *r, struct err *e);
void client_user_charge(struct request *r, size_t n); /* more of the same request; the bucket may go below zero */
int64_t client_user_store_limit(const struct request *r); /* bytes that rows of the owner may take; 0: any number */
int64_t client_user_jobs_limit(const struct request *r); /* live jobs the owner may have; 0: any number */

/* The owner's name as known; NULL: look it up with user_lookup_name() off the loop, then tell client_user_set_owner_name(). */
const char *client_user_owner_name(struct request *r);
void client_user_set_owner_name(struct request *r, const char *name);

/* The name of who asks, which in a daemon of one user may be root; NULL: not known. */
const char *client_user_name(const struct request *r);
bool client_user_is(const struct request *r, const char *ref); /* by his name or his uid */
void client_user_set_name(struct request *r, const char *name);
