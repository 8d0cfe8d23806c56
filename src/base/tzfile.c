/* SPDX-License-Identifier: Apache-2.0 */
/* Reads time zone files as bytes; what they mean is decided elsewhere. */
#include "base/tzfile.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static char *local_link(void)
{
	static const char mark[] = "/zoneinfo/";
	char target[PATH_MAX];
	ssize_t n = readlink("/etc/localtime", target, sizeof target - 1);
	const char *at;

	if (n < 0)
		return NULL;
	target[n] = '\0';
	at = strstr(target, mark);
	return at ? xstrdup(at + strlen(mark)) : NULL;
}

static char *local_file(void)
{
	AUTO_DONE(buf) b = {};

	if (io_read_file("/etc/timezone", &b, 256) < 0 || !b.len)
		return NULL;
	b.data[strcspn(b.data, " \t\n")] = '\0';
	return *b.data ? xstrdup(b.data) : NULL;
}

char *tzfile_local_name(void)
{
	const char *env = getenv("TZ");
	char *name;

	if (env && *env == ':')
		env++;
	if (env && *env && *env != '/')
		return xstrdup(env);
	if ((name = local_link()) || (name = local_file()))
		return name;
	return xstrdup("UTC");
}
