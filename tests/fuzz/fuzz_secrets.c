/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reply of the process that reads secrets. That process runs as the owner, who controls
 * its memory.
 */
#include "base/buf.h"
#include "exec/worker/output/secrets.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct secrets s = {};
	AUTO_DONE(buf) again = {};
	size_t at, sum = 0;
	int error;

	if (!secrets_parse(&s, (const char *)data, size, &error, &at)) {
		if (s.n)
			abort();
		return 0;
	}
	for (size_t i = 0; i < s.n; i++)
		sum += s.v[i].len;
	if (s.n > SECRETS_MAX || sum > SECRETS_BYTES)
		abort();
	secrets_encode(&s, &again); /* one content has one encoding */
	if (again.len != size || (size && memcmp(again.data, data, size) != 0))
		abort();
	secrets_done(&s);
	return 0;
}
