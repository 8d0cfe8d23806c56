/* SPDX-License-Identifier: Apache-2.0 */
/* A job definition as the 'jobctl add' command that creates it. */
#pragma once
#include <stdbool.h>

struct buf;
struct job_spec;

/*
 * Appends the command, quoted for a shell. Values of pairs for which 'secret' is true are masked;
 * NULL: none.
 */
void spec_command_write(const struct job_spec *s, bool (*secret)(const char *pair),
	struct buf *out);
