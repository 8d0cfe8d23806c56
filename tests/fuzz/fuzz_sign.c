/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes signs of commands: whatever a line contains, its text can be shown and its numbers are in range. */
#include "base/text.h"
#include "core/job/sign.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sign s;

	if (!sign_parse((const char *)data, size, &s))
		return 0;
	if (s.percent < SIGN_PERCENT_NONE || s.percent > 100 || s.extend < 0 || !memchr(s.text, '\0', sizeof(s.text)) ||
		!text_utf8_valid(s.text, strlen(s.text)))
		abort();
	for (const char *c = s.text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			abort();
	return 0;
}
