/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the state that a run takes to another node. */
#include "store/read/run_state.h"
#include "base/buf.h"
#include "base/err.h"
#include "store/store_private.h"
#include <inttypes.h>
#include <string.h>

static bool last_find(struct store *s, int64_t run, int64_t *ret_fence, int64_t *ret_part, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_STATE_LAST, e);

	query_int(&q, run);
	*ret_part = -1;
	if (query_row(&q)) {
		*ret_fence = query_get_int(&q);
		*ret_part = query_get_int(&q);
	}
	return query_finish(&q);
}

static bool part_read(struct store *s, int64_t run, int64_t fence, int64_t part, struct buf *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_STATE_GET, e);
	const char *data;

	query_int(&q, run);
	query_int(&q, fence);
	query_int(&q, part);
	if (query_row(&q)) {
		data = query_get_text(&q);
		if (data && buf_base64_decode(data, strlen(data), ret))
			return true;
	}
	return !q.failed && err_set(e, ERR_INTERNAL, "part %" PRId64 " of the state of run %" PRId64 " is damaged", part, run);
}

bool run_state_read(struct store *s, int64_t run, struct buf *ret, struct err *e)
{
	int64_t fence = 0, last;

	if (!last_find(s, run, &fence, &last, e))
		return false;
	for (int64_t part = 0; part <= last; part++)
		if (!part_read(s, run, fence, part, ret, e))
			return false;
	return true;
}
