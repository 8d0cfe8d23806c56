/* SPDX-License-Identifier: Apache-2.0 */
/* Who may have workers: what the spawner itself believes, whatever the engine says. */
#pragma once
#include "core/job/start_failure.h"
#include "core/job/start_plan.h"
#include "exec/child/user.h"
#include <stdbool.h>

struct err;
struct frame_start;
struct payload;
struct spawner_conf;
struct warrant_key;

struct admission {
	const struct spawner_conf *conf; /* we are root and start workers as their owners; NULL: only our own */
	struct user self;                /* who we are, then */
	const struct warrant_key *key;   /* NULL: warrants mean nothing here; borrowed like the configuration */
	uid_t engine;                    /* who gains nothing by a process of his own: he needs no warrant */
};

/* Whether this may be started for its owner, if he is who the order says. */
bool admission_check_order(const struct admission *a, const struct frame_start *s, const struct payload *p, int in /* -1: none */,
	enum start_failure *why, struct err *e);
/* Whether he is. */
bool admission_check_user(const struct exec_spec *o, const struct user *u, enum start_failure *why, struct err *e);

/* Whether a file may be opened for this uid. A job that needs a warrant has no artifact, so it has no file either. */
bool admission_check_file(const struct admission *a, int64_t uid);

const struct user *admission_self(const struct admission *a); /* NULL: owners have to be looked up */
enum warrant_policy admission_policy(const struct admission *a);
bool admission_uses_pam(const struct admission *a);
