/* SPDX-License-Identifier: Apache-2.0 */
/* The five time fields and the nicknames of a crontab entry; private to this directory. */
#pragma once
#include "core/crontab/reader.h"

/*
 * Reads the fields at the cursor and the blanks after them. False: cron refuses the line, and the
 * error was reported.
 */
bool fields_read(struct reader *r, struct crontab_time *ret);
/* The same for a nickname; the cursor is at '@'. @reboot leaves the time empty. */
bool fields_read_nickname(struct reader *r, struct crontab_entry *e);
/* Reports what is probably not meant, for an entry that was read. */
void fields_lint(struct reader *r, const struct crontab_entry *e, size_t pos);
