/* SPDX-License-Identifier: Apache-2.0 */
/* Suggests the closest known word for a mistyped one. */
#pragma once
#include <stddef.h>

struct suggest {
	const char *typed;
	char *best;      /* owned: the closest word so far; NULL: none is close enough */
	size_t distance; /* between the two */
};
void suggest_done(struct suggest *s);
void suggest_offer(struct suggest *s, const char *word);

/* Reports that the table has no such verb, with a suggestion; returns the exit code. */
struct verb;
int suggest_verb(const struct verb *table, char *const *words, size_t n);
