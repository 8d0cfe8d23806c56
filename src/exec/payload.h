/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a start (arguments, environment, directory) in a sealed memfd. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct plan;

#define PAYLOAD_MAX (8 << 20)
#define PAYLOAD_ARGV_MAX 65536
#define PAYLOAD_ENV_MAX 1024

/* At the start of the memory; the texts follow, each with its NUL: arguments, environment, directory. */
struct payload_head {
	uint32_t magic;
	uint32_t argc, envc;
	uint32_t has_cwd;
};
#define PAYLOAD_MAGIC UINT32_C(0x316c706a) /* "jpl1" */

struct payload {
	char *data;        /* owned; the texts below lie in it */
	char **argv, **env; /* owned arrays, each followed by a NULL */
	size_t argc, envc;
	const char *cwd;   /* NULL: none was given */
};

int payload_memfd(const struct plan *p); /* a descriptor, or -errno; -E2BIG beyond the bounds above */
bool payload_parse(struct payload *ret, const void *data, size_t len, struct err *e);
bool payload_read(struct payload *ret, int fd, struct err *e); /* checks the seals first */
void payload_done(struct payload *p);

/* Whether nobody can change 'fd' any more, and it has at most 'max' bytes. */
bool payload_sealed(int fd, size_t max, size_t *ret_size, struct err *e);
