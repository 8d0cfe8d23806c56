/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the exec spec that the daemon sends to the spawner: an accepted one encodes to the same
 * bytes.
 */
#include "base/buf.h"
#include "core/start/exec_spec.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_DONE(exec_spec) o = {};
	AUTO_DONE(buf) again = {};

	if (!exec_spec_parse(&o, data, size, NULL))
		return 0;
	if (o.uid < 0 || o.uid > INT64_C(4294967294) || !o.owner || o.argv.n == 0 || !o.argv.v[0][0])
		abort();
	if (!exec_spec_encode(&o, &again, NULL) || again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	return 0;
}
