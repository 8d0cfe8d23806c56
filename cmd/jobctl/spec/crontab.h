/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises a crontab on the standard input of 'jobctl add'. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;

/* True: each line is empty, a comment, a variable or an entry, and there is at least one entry. */
bool crontab_is(const char *text);

/*
 * Appends the 'jobctl add' commands of up to 'max' entries, one per line; returns the number of all
 * entries.
 */
size_t crontab_commands(const char *text, size_t max, struct buf *out);
