/* SPDX-License-Identifier: Apache-2.0 */
/* A crontab as lines of JSON. */
#pragma once

struct buf;
struct crontab;

/*
 * One object per line: an entry ("command"), a refused line ("error"), a refused table ("file_error")
 * or a warning ("finding"). The times are sets of values, so they depend on no clock and no zone.
 */
void crontab_json_write(const struct crontab *t, struct buf *out);
