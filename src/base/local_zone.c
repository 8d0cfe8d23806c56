/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the time zone from $TZ, /etc/timezone or /etc/localtime. */
#include "base/local_zone.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define ZONE_MAX 64
#define ZONE_DIR "zoneinfo/"

char *local_zone_parse(const char *text)
{
	const char *dir = strstr(text, ZONE_DIR);
	size_t len;

	text += *text == ':';
	if (dir)
		text = dir + strlen(ZONE_DIR);
	len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/");
	/*
	 * POSIX rules such as CET-1CEST and CET-1CEST,M3.5.0 are not names; they have letters after
	 * a number.
	 */
	if (len == 0 || len > ZONE_MAX || text[0] == '/' || (text[len] && text[len] != '\n'))
		return NULL;
	if (!memchr(text, '/', len) && strcspn(text, "+-0123456789") < len && text[len - 1] >= 'A')
		return NULL;
	return xstrndup(text, len);
}

static char *from_link(void)
{
	char target[PATH_MAX];
	ssize_t n = readlink("/etc/localtime", target, sizeof target - 1);

	if (n <= 0)
		return NULL;
	target[n] = 0;
	return strstr(target, ZONE_DIR) ? local_zone_parse(target) : NULL;
}

char *local_zone(void)
{
	const char *tz = getenv("TZ");
	AUTO_DONE(buf) text = {};
	char *name = NULL;

	if (tz && *tz)
		name = local_zone_parse(tz);
	if (!name && io_read_file("/etc/timezone", &text, 256) == 0 && text.len)
		name = local_zone_parse(text.data);
	if (!name)
		name = from_link();
	return name ? name : xstrdup("UTC");
}
