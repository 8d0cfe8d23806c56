/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over its corpus, one test per file, without libFuzzer. fuzz_NAME reads
 * tests/fuzz/corpus/NAME, or the files and directories given as arguments.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX (64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#ifndef FUZZING
static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void collect(const char *path, struct strv *files)
{
	DIR *d = opendir(path);
	struct dirent *entry;

	if (!d) {
		strv_add(files, path);
		return;
	}
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.')
			strv_take(files, xprintf("%s/%s", path, entry->d_name));
	closedir(d);
}

static bool replay(const char *path)
{
	AUTO_DONE(buf) b = {};
	uint8_t *exact;

	if (io_read_file(path, &b, INPUT_MAX) < 0)
		return false;
	/* a copy of this exact size lets the address sanitizer detect an access behind its end */
	exact = xcalloc(b.len ? b.len : 1, 1);
	if (b.len)
		memcpy(exact, b.data, b.len);
	LLVMFuzzerTestOneInput(exact, b.len);
	free(exact);
	return true;
}

int main(int argc, char **argv)
{
	AUTO_DONE(strv) files = {};
	const char *top = getenv("top_srcdir"), *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	AUTO_TEXT corpus = NULL;
	bool all = true;

	if (text_starts(name, "lt-"))
		name += strlen("lt-");
	corpus = xprintf("%s/tests/fuzz/corpus/%s", top ? top : ".", text_starts(name, "fuzz_") ? name + 5 : name);
	for (int i = 1; i < argc; i++)
		collect(argv[i], &files);
	if (argc == 1)
		collect(corpus, &files);
	qsort(files.v, files.n, sizeof(files.v[0]), compare);
	printf("1..%zu\n", files.n);
	for (size_t i = 0; i < files.n; i++) {
		bool ok = replay(files.v[i]);

		printf("%sok %zu - %s\n", ok ? "" : "not ", i + 1, strrchr(files.v[i], '/') + 1);
		fflush(stdout);
		all = all && ok;
	}
	return all && files.n > 0 ? 0 : 1;
}
#endif
