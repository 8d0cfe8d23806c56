/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes results of commands: whatever a file contains, the results are bounded, and each can be a variable. */
#include "base/auto.h"
#include "base/text.h"
#include "core/job/result.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_DONE(strv) v = {};
	AUTO_TEXT note = NULL;

	results_parse((const char *)data, size, &v, &note);
	if (v.n > RESULTS_MAX)
		abort();
	for (size_t i = 0; i < v.n; i++) {
		size_t key = strcspn(v.v[i], "="), len = strlen(v.v[i]);

		if (!result_key_valid(v.v[i], key) || len - key - 1 > RESULT_VALUE_MAX || !text_utf8_valid(v.v[i], len))
			abort();
		for (const char *c = v.v[i]; *c; c++)
			if ((unsigned char)*c < ' ' || *c == 0x7f)
				abort();
		for (size_t k = 0; k < i; k++)
			if (strncmp(v.v[k], v.v[i], key + 1) == 0)
				abort();
	}
	return 0;
}
