/* SPDX-License-Identifier: Apache-2.0 */
/* Reads time zone files as bytes. */
#include "base/tzfile.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TZFILE_MAX (256 * 1024)
#define TZDIR_DEFAULT "/usr/share/zoneinfo"

bool tzfile_read(const char *name, struct buf *out, struct err *e)
{
	const char *dir = getenv("TZDIR");
	AUTO_TEXT path = xprintf("%s/%s", dir && *dir ? dir : TZDIR_DEFAULT, name);
	int r = io_read_file(path, out, TZFILE_MAX);

	if (r == -ENOENT || r == -ENOTDIR || r == -EISDIR)
		return err_field(e, "tz", "no time zone '%s'; names are like 'Europe/Berlin' or 'UTC'", name);
	if (r < 0)
		return err_field(e, "tz", "time zone '%s' could not be read: %s", name, strerror(-r));
	return true;
}
