/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the detection of crontabs: a crontab has an entry, and the number of shown commands is limited. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "jobctl/spec/crontab.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_lines(const struct buf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_DONE(buf) out = {};
	AUTO_TEXT text = NULL;
	size_t entries;

	if (size > 65536)
		return 0;
	text = xstrndup((const char *)data, size);
	if (!crontab_is(text))
		return 0;
	entries = crontab_commands(text, SHOWN, &out);
	if (entries == 0 || count_lines(&out) < (entries < SHOWN ? entries : SHOWN))
		abort();
	return 0;
}
