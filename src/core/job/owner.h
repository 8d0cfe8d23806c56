/* SPDX-License-Identifier: Apache-2.0 */
/* Owner numbers: a uid plus a generation for reused uids. */
#pragma once
#include <stdint.h>

/*
 * An owner is a pair of uid and user name. The first name of a uid has the uid as its owner number,
 * each later name 2^32 more. So a new user with a reused uid is another owner and does not inherit
 * jobs.
 */
#define OWNER_STEP (INT64_C(1) << 32)
#define OWNER_ALL (-1)      /* as a scope: all owners */
#define OWNER_NOT_ROOT (-2) /* as a scope: all owners except root */

static inline uint32_t owner_uid(int64_t number)
{
	return (uint32_t)(number & (OWNER_STEP - 1));
}
