/* SPDX-License-Identifier: Apache-2.0 */
/* A warrant: the word of root, or of an owner, that the spawner may start exactly this order. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;

#define WARRANT_LEN 32
#define WARRANT_HEX (2 * WARRANT_LEN + 1)

/* For whom the spawner wants one; root's configuration says so. */
enum warrant_policy {
	WARRANT_NONE, /* the engine's word is enough */
	WARRANT_ROOT, /* not for uid 0 */
	WARRANT_ALL,  /* for nobody */
	WARRANT_POLICY_MAX
};
bool warrant_needed(enum warrant_policy p, int64_t uid);

/* As it is kept in a definition: 64 hexadecimal digits, lower case. */
bool warrant_parse(const char *hex, unsigned char ret[WARRANT_LEN]);
char *warrant_print(const unsigned char warrant[WARRANT_LEN], char out[WARRANT_HEX]);
