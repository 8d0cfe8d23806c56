/* SPDX-License-Identifier: Apache-2.0 */
/* Client of the spawner that gets or verifies a warrant. */
#pragma once
#include "core/job/warrant.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* The kind is part of the signed bytes, so a warrant of one kind is not valid for another. */
enum warrant_kind {
	WARRANT_OF_ORDER, /* an encoded execution specification */
	/*
	 * The definition of a template. It is never started itself. The warrant depends on the
	 * approving uid.
	 */
	WARRANT_OF_TEXT,
	WARRANT_KIND_MAX
};
#define WARRANT_TEXT_MAX (1 << 20)

/* The bytes that a warrant approves. */
struct warrant_subject {
	enum warrant_kind kind;
	/* Of the user who approves a text; a specification names its owner itself. */
	uint32_t uid;
	const void *data;
	size_t len;
};

struct warrant_query {
	/* Of the spawner. The answer counts only if the peer is a process of root. */
	const char *socket;
	struct warrant_subject subject;
	const unsigned char *check; /* verify this warrant; NULL: make a new one */
};
/* ERR_DENIED: the spawner refused to make a warrant, or the warrant is not valid. */
bool warrant_client_request(const struct warrant_query *q, unsigned char ret[WARRANT_LEN],
	struct err *e);
