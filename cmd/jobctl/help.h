/* SPDX-License-Identifier: Apache-2.0 */
/* Help as text, made from the table of verbs. */
#pragma once

struct buf;
struct verb;

void help_all(struct buf *out);
void help_verb(const struct verb *v, struct buf *out);
