/* SPDX-License-Identifier: Apache-2.0 */
/* What a start has beside its frame: the order's bytes, then the variables of the run, in a sealed memfd. */
#pragma once
#include "base/auto.h"
#include "core/job/exec_spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct start_plan;

#define PAYLOAD_VARS_BYTES (256 << 10)

/* At the start of the memory; the order follows, then the variables, each with its NUL. */
struct payload_head {
	uint32_t magic;
	uint32_t order_len;
	uint32_t vars;      /* how many */
	uint32_t reserved;  /* 0 */
};
#define PAYLOAD_MAGIC UINT32_C(0x326c706a) /* "jpl2" */
#define PAYLOAD_MAX (sizeof(struct payload_head) + EXEC_SPEC_MAX + PAYLOAD_VARS_BYTES)

struct payload {
	char *data;          /* owned; what is below lies in it */
	const char *bytes;   /* of the order: what a warrant is checked against */
	size_t bytes_len;
	struct exec_spec spec;
	char **vars;         /* owned array, followed by a NULL */
	size_t vars_n;
};

int payload_memfd(const struct start_plan *p, struct err *e); /* a descriptor; -1 and *e otherwise */
bool payload_parse(struct payload *ret, const void *data, size_t len, struct err *e);
bool payload_read(struct payload *ret, int fd, struct err *e); /* checks the seals first */
void payload_done(struct payload *p);

/* Whether nobody can change 'fd' any more, and it has at most 'max' bytes. */
bool payload_sealed(int fd, size_t max, size_t *ret_size, struct err *e);
