/* SPDX-License-Identifier: Apache-2.0 */
/* Help as text, made from the table of verbs. */
#pragma once

struct buf;
struct verb;

void help_all(const struct verb *table, struct buf *out);
void help_group(const struct verb *table, const char *word, struct buf *out); /* verbs of two words */
void help_verb(const struct verb *v, struct buf *out);
