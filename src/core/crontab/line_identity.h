/* SPDX-License-Identifier: Apache-2.0 */
/* Identities and names of jobs that come from lines of a table. They do not depend on the number of the line. */
#pragma once
#include "base/auto.h"
#include "base/map.h"
#include "base/sha256.h"
#include <stddef.h>

/* Counts equal lines of one table, so that each has its own identity. */
struct line_identities {
	struct map times; /* by the first bytes of the digest: how often it has occurred */
};
void line_identities_done(struct line_identities *l);

/* The digest of the parts; for a repeated line, of the parts and the number of repetitions. */
void line_identity(struct line_identities *l, const char *const *parts, size_t n, unsigned char ret[SHA256_LEN]);

/*
 * "backup.sh-3fa9c1d2": the word that names the command best, and the beginning of the identity. Caller frees.
 */
char *line_name(const char *command, const unsigned char *identity);
