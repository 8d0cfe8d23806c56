/* SPDX-License-Identifier: Apache-2.0 */
/* State kept per user: name, submission rate, job limit. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct request;

/* Takes one token for a submission from the caller's bucket; ERR_LIMIT if it is empty. */
bool client_user_take_submission(struct request *r, struct err *e);
/* n more tokens for the same request; the number may become negative. */
void client_user_charge(struct request *r, size_t n);
/* Bytes of rows in the store; 0: no limit. */
int64_t client_user_store_limit(const struct request *r);
int64_t client_user_jobs_limit(const struct request *r); /* live jobs of the owner; 0: no limit */

/*
 * The cached name of the owner. NULL: look it up with user_lookup_name() on another thread, then
 * call client_user_set_owner_name().
 */
const char *client_user_owner_name(struct request *r);
void client_user_set_owner_name(struct request *r, const char *name);

/* The cached name of the caller, which may be root in user mode; NULL: not known. */
const char *client_user_name(const struct request *r);
bool client_user_is(const struct request *r, const char *ref); /* 'ref' is a name or a uid */
void client_user_set_name(struct request *r, const char *name);
