/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of user lookups. Lookups run in child processes, so the loop never waits for the user database. */
#pragma once
#include "base/clock.h"
#include "base/deadline.h"
#include "base/map.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "exec/child/user.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct user_files;
struct workers;

#define USER_CACHE_TTL (60 * USEC_SEC)

struct user_answer {
	const struct user *user;     /* borrowed until control returns to the loop; NULL: failed */
	enum start_failure failure;
	const char *error;
};
typedef void user_cache_found_fn(uid_t uid, const struct user_answer *a, void *arg);

struct user_cache {
	int ep;
	struct workers *workers;     /* reaps the lookup processes; borrowed */
	bool pam;
	struct map by_uid;           /* struct user_entry, see user_cache.c */
	struct deadlines deadlines;
	size_t asking;               /* running lookup processes */
	struct user_files *files;    /* owned: the files as seen in this loop iteration; NULL: not read yet */
	bool files_seen;
	user_cache_found_fn *fn;
	void *arg;
};

void user_cache_done(struct user_cache *us);
/* True: *ret is set. False: fn is called with the answer within LOOKUP_TIMEOUT. */
bool user_cache_get(struct user_cache *us, uid_t uid, struct user_answer *ret);
/* Called once per loop iteration. Fails lookups that took too long; the next start looks at the files again. */
void user_cache_timeouts(struct user_cache *us, usec_t now);
usec_t user_cache_next_timeout(const struct user_cache *us);
