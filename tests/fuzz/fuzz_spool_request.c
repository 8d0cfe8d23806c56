/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the requests and replies of jobsched-crontab: what is accepted is written back byte by byte. */
#include "base/auto.h"
#include "base/buf.h"
#include "spool/request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Only the length may have another form: leading zeros. */
static void compare_body(const struct buf *written, const char *body, size_t len)
{
	if (written->len < len || memcmp(written->data + written->len - len, body, len) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spool_request request = {}, again = {};
	AUTO_DONE(spool_reply) reply = {};
	AUTO_DONE(buf) out = {};

	if (spool_request_read((const char *)data, size, &request)) {
		if (request.len > size || strchr(request.user, '\n') || strchr(request.label, '\n'))
			abort();
		spool_request_write(&request, &out);
		compare_body(&out, request.body, request.len);
		if (!spool_request_read(out.data, out.len, &again) ||
		    again.operation != request.operation || strcmp(again.user, request.user) != 0)
			abort();
	}
	if (spool_reply_read((const char *)data, size, &reply)) {
		buf_clear(&out);
		spool_reply_write(&reply, &out);
		compare_body(&out, reply.body.data ? reply.body.data : "", reply.body.len);
	}
	return 0;
}
