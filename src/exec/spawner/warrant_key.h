/* SPDX-License-Identifier: Apache-2.0 */
/* Warrant key, which only the spawner of root has: HMAC signatures of approved jobs. */
#pragma once
#include "core/job/warrant.h"
#include <stdbool.h>

struct err;
struct warrant_subject;

#define WARRANT_KEY_LEN 32

struct warrant_key {
	unsigned char bytes[WARRANT_KEY_LEN];
	bool has_second;
	unsigned char second[WARRANT_KEY_LEN]; /* makes no warrants; its warrants are valid, too */
};

/*
 * Reads the key from the state directory of root's spawner; creates it if the file is missing. Reads the second key, which
 * exists while an administrator replaces the key.
 */
bool warrant_key_open(struct warrant_key *ret, int state_dir, struct err *e);

void warrant_key_sign(const struct warrant_key *k, const struct warrant_subject *t,
	unsigned char ret[WARRANT_LEN]);
bool warrant_key_verify(const struct warrant_key *k, const struct warrant_subject *t,
	const unsigned char w[WARRANT_LEN]);
