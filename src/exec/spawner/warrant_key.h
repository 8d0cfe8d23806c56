/* SPDX-License-Identifier: Apache-2.0 */
/* Warrants: an HMAC of the order's bytes, with a key that only root's spawner has. */
#pragma once
#include "core/job/warrant.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define WARRANT_KEY_LEN 32

struct warrant_key {
	unsigned char bytes[WARRANT_KEY_LEN];
};

/* What is approved. The kinds never stand for each other. */
enum warrant_kind {
	WARRANT_OF_ORDER,
	WARRANT_OF_TEXT, /* a template's definition: never started as it is, and only as good as who approved it */
	WARRANT_KIND_MAX
};
#define WARRANT_TEXT_MAX (1 << 20)

/* From the file in a directory of root's alone; made when there is none. */
bool warrant_key_open(struct warrant_key *ret, int state_dir, struct err *e);

struct warrant_subject {
	enum warrant_kind kind;
	uint32_t uid;    /* who approves a text; an order says itself whose it is */
	const void *data;
	size_t len;
};
void warrant_key_sign(const struct warrant_key *k, const struct warrant_subject *t, unsigned char ret[WARRANT_LEN]);
bool warrant_key_verify(const struct warrant_key *k, const struct warrant_subject *t, const unsigned char w[WARRANT_LEN]);

/* ---- who asks for one: jobctl ---- */
struct warrant_query {
	const char *socket;      /* the spawner's; it must be root's process that answers */
	struct warrant_subject thing;
	const unsigned char *check; /* whether this one holds; NULL: a new one is wanted */
};
/* ERR_DENIED: it was refused, or does not hold. */
bool warrant_client_request(const struct warrant_query *a, unsigned char ret[WARRANT_LEN], struct err *e);
