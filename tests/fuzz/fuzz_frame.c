/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the frames and payloads of the spawner's socket, in both directions. */
#include "exec/proto/frame.h"
#include "exec/proto/payload.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void frames(const uint8_t *data, size_t size)
{
	struct frame f;

	memset(&f, 0xa5, sizeof(f)); /* detects members that the parser does not set */
	memcpy(&f, data, size < sizeof(f) ? size : sizeof(f));
	for (unsigned from = FRAME_FROM_DAEMON; from <= FRAME_FROM_SPAWNER; from++)
		for (uint32_t version = 0; version <= FRAME_VERSION; version++)
			for (size_t fds = 0; fds <= FRAME_FDS_MAX; fds++)
				if (frame_check(&f, size, fds, (enum frame_from)from, version, NULL) &&
					(size != f.size || size > sizeof(f) || frame_type_name(f.type)[0] == '?'))
					abort();
}

static void payloads(const uint8_t *data, size_t size)
{
	struct payload p = {};

	if (!payload_parse(&p, data, size, NULL))
		return;
	if (p.vars[p.vars_n] || !p.spec.argv.v[0][0])
		abort();
	for (size_t i = 0; i < p.vars_n; i++)
		if (!strchr(p.vars[i], '='))
			abort();
	payload_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	frames(data, size);
	payloads(data, size);
	return 0;
}
