/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a start request is allowed, independent of the daemon. */
#pragma once
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "exec/child/user.h"
#include <stdbool.h>

struct err;
struct frame_start;
struct payload;
struct spawner_conf;
struct warrant_key;

struct admission {
	/* System mode: workers run as their owners; NULL: user mode, workers run as 'self' only. */
	const struct spawner_conf *conf;
	struct user self;                /* in user mode: the user of the spawner */
	const struct warrant_key *key;   /* NULL: no warrants; borrowed like conf */
	/*
	 * UID of the daemon. Its jobs need no warrant: the daemon can already run processes as this
	 * uid.
	 */
	uid_t daemon;
};

/*
 * Checks uid, warrant and artifact. The name of the owner is checked later by
 * admission_check_user().
 */
bool admission_check_order(const struct admission *a, const struct frame_start *s,
	const struct payload *p, int in /* -1: none */, enum start_failure *why, struct err *e);
/* Whether the uid still belongs to the user name of the specification. */
bool admission_check_user(const struct exec_spec *o, const struct user *u, enum start_failure *why,
	struct err *e);

/*
 * Whether a file may be opened as this uid. Jobs that need a warrant have no artifact, so their
 * files are refused.
 */
bool admission_check_file(const struct admission *a, int64_t uid);

/* NULL: system mode, the owner must be looked up. */
const struct user *admission_self(const struct admission *a);
enum warrant_policy admission_policy(const struct admission *a);
bool admission_uses_pam(const struct admission *a);
