/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes command lines to be completed: each candidate begins with the last word of the line. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "jobctl/complete/complete.h"
#include "jobctl/verbs/verbs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names as a daemon may have them. */
static void some_names(enum complete_kind kind, const char *prefix, struct completion *c)
{
	(void)prefix;
	complete_add(c, kind == COMPLETE_RUNS ? "backup#1" : "backup", "active");
	complete_add(c, "b\033[31m", "control\tcharacters\n");
}

static void check_line(const char *line, size_t len, const char *word)
{
	AUTO_DONE(buf) escaped = {};

	text_escape(&escaped, word, strlen(word));
	if (line[0] == ':' && strspn(line + 1, "abcdefghijklmnopqrstuvwxyz") == len - 1)
		return;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t')
			abort();
	if (escaped.len == strlen(word) && strncmp(line, word, strlen(word)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_TEXT line = xstrndup((const char *)data, size);
	AUTO_DONE(strv) words = {};
	AUTO_DONE(buf) out = {};
	struct completion c = {.table = verbs, .names = some_names, .out = &out};
	size_t lines = 0;

	complete_split(line, &words);
	if (words.n == 0)
		abort();
	complete_words(&c, &words);
	for (const char *at = out.data; at && *at; at += strcspn(at, "\n") + 1, lines++)
		check_line(at, strcspn(at, "\n"), words.v[words.n - 1]);
	if (lines > COMPLETE_MAX + 2)
		abort();
	return 0;
}
