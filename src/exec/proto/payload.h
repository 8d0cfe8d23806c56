/* SPDX-License-Identifier: Apache-2.0 */
/* Payload of a start request, in the frame or in a sealed memfd: the execution specification, then the variables of the run. */
#pragma once
#include "base/auto.h"
#include "core/start/exec_spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct start_plan;

#define PAYLOAD_VARS_BYTES (256 << 10)

/*
 * Start of the payload. The encoded specification follows, then the variables, each terminated by a
 * NUL.
 */
struct payload_head {
	uint32_t magic;
	uint32_t order_len;
	uint32_t vars;      /* number of variables */
	uint32_t reserved;  /* 0 */
};
#define PAYLOAD_MAGIC UINT32_C(0x326c706a) /* "jpl2" */
#define PAYLOAD_MAX (sizeof(struct payload_head) + EXEC_SPEC_MAX + PAYLOAD_VARS_BYTES)

struct payload {
	char *data;          /* owned; the members below point into it */
	const char *bytes;   /* the encoded specification; the warrant is an HMAC of these bytes */
	size_t bytes_len;
	struct exec_spec spec;
	char **vars;         /* owned array, NULL-terminated */
	size_t vars_n;
};

#define PAYLOAD_TRACE_VERSION 3 /* spawners of earlier protocol versions refuse the variables of a trace; they get none */

/* Appends the encoded payload for a spawner of this protocol version to an empty buffer. */
bool payload_encode(const struct start_plan *p, uint32_t version, struct buf *ret, struct err *e);
/* The same in a sealed memfd. Returns a descriptor, or -1 and sets *e. */
int payload_memfd(const struct start_plan *p, uint32_t version, struct err *e);
bool payload_parse(struct payload *ret, const void *data, size_t len, struct err *e);
/* Checks the seals of the memfd first. */
bool payload_read(struct payload *ret, int fd, struct err *e);
void payload_done(struct payload *p);

/* Whether 'fd' is a memfd sealed against writes and resizing, of at most 'max' bytes. */
bool payload_sealed(int fd, size_t max, size_t *ret_size, struct err *e);
