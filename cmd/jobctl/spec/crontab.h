/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises a crontab where a script was expected. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Every line is empty, a comment, a variable or a schedule with a command, and there is at least one schedule. */
bool crontab_is(const char *text);

/* The 'jobctl add' commands for up to 'max' of its entries, one per line; returns how many entries there are. */
size_t crontab_commands(const char *text, size_t max, struct buf *out);
