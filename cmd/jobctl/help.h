/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts generated from the verb table. */
#pragma once

struct buf;
struct verb;

void help_all(const struct verb *table, struct buf *out);
/* The verbs of two words that begin with 'word'. */
void help_group(const struct verb *table, const char *word, struct buf *out);
void help_verb(const struct verb *v, struct buf *out);
