/* SPDX-License-Identifier: Apache-2.0 */
/* The mail of a run's output, with the headers of Debian's cron. */
#pragma once
#include <stddef.h>

struct buf;
struct job_spec;

struct cron_mail {
	const struct job_spec *spec;
	const char *owner, *to, *host;
	const char *output;
	size_t output_len;
};
void cron_mail_write(const struct cron_mail *m, struct buf *out);
