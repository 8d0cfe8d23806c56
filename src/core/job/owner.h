/* SPDX-License-Identifier: Apache-2.0 */
/* The number of an owner. A uid can come to somebody else, so it is not enough to tell whose a job is. */
#pragma once
#include <stdint.h>

/*
 * An owner is a uid and a name. The first name that had a uid has the uid as its number, each later one 2^32 more: who
 * comes to a uid that was used before is another owner, and sees nothing of what the one before him left.
 */
#define OWNER_STEP (INT64_C(1) << 32)
#define OWNER_ALL (-1)      /* where a scope is meant: everybody's */
#define OWNER_NOT_ROOT (-2) /* everybody's but root's */

static inline uint32_t owner_uid(int64_t number)
{
	return (uint32_t)(number & (OWNER_STEP - 1));
}
