/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean": the known word nearest to a mistyped one. */
#pragma once
#include <stddef.h>

struct suggest {
	const char *typed;
	char *best;      /* owned; NULL: nothing near enough */
	size_t distance; /* of the best */
};
void suggest_done(struct suggest *s);
void suggest_offer(struct suggest *s, const char *word);

/* Says that no verb of the table is so named; returns the exit code. */
struct verb;
int suggest_verb(const struct verb *table, char *const *words, size_t n);
