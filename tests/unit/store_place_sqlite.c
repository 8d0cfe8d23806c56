/* SPDX-License-Identifier: Apache-2.0 */
/* Store tests on SQLite: each store is a file in a directory of its own. */
#include "base/text.h"
#include "store_fixture.h"
#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

const struct db_ops *const fixture_ops = &db_sqlite_ops;

int place_group_setup(void **state)
{
	(void)state;
	return 0;
}

int place_group_teardown(void **state)
{
	(void)state;
	return 0;
}

char *place_new(void)
{
	AUTO_TEXT dir = xprintf("%s/store-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");

	assert_non_null(mkdtemp(dir));
	return xprintf("%s/jobs.db", dir);
}

void place_drop(const char *where)
{
	AUTO_TEXT copy = xstrdup(where);
	const char *dir = dirname(copy);
	DIR *d = opendir(dir);
	struct dirent *entry;

	assert_non_null(d);
	while ((entry = readdir(d))) {
		AUTO_TEXT path = xprintf("%s/%s", dir, entry->d_name);

		if (entry->d_name[0] != '.')
			unlink(path);
	}
	closedir(d);
	rmdir(dir);
}
