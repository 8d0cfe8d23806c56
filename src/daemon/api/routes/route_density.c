/* SPDX-License-Identifier: Apache-2.0 */
/* Route that counts the runs of a time range by interval. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/api/stream/list_stream.h"
#include "daemon/api/routes/routes.h"
#include "store/read/run_density.h"
#include <inttypes.h>

struct density_list {
	struct list_stream list;
	struct run_density density;
};

/* Intervals without runs are left out. */
static void write_counts(struct density_list *l, struct buf *out, size_t *ret_n)
{
	const struct run_density *d = &l->density;

	for (size_t i = 0; i < d->n; i++) {
		if (d->counts[i].runs == 0)
			continue;
		list_stream_comma(&l->list, out);
		buf_printf(out, "{\"interval\":%zu,\"runs\":%" PRId64 ",\"failed\":%" PRId64 "}", i, d->counts[i].runs, d->counts[i].failed);
		(*ret_n)++;
	}
}

static bool step_density(struct store *s, struct list_stream *l, size_t n, struct buf *out, size_t *ret_n,
	bool *ret_more, struct err *e)
{
	struct density_list *d = (struct density_list *)l;

	(void)n;
	d->density.uid = l->scope;
	*ret_n = 0;
	if (!run_density_step(s, &d->density, ret_more, e))
		return false;
	if (!*ret_more)
		write_counts(d, out, ret_n);
	return true;
}

static void free_density(struct list_stream *l)
{
	free(l);
}

void route_density(struct request *r)
{
	usec_t now = request_now(r), until = request_number(r, "until", now), since = request_number(r, "since", until - USEC_DAY);
	int64_t n = request_number(r, "intervals", 100);
	struct density_list *l;
	struct err e = {};

	if (since < 0 || until - since < n || until - since > 400 * USEC_DAY) {
		err_field(&e, "until", "'until' must be after 'since', by at most 400 days");
		request_answer_err(r, &e);
		return;
	}
	l = xcalloc(1, sizeof(*l));
	l->list = (struct list_stream){.name = "intervals", .step = step_density, .free = free_density, .left = SIZE_MAX};
	/* the last interval may end after 'until' by less than n microseconds */
	l->density = (struct run_density){.since = since, .at = since, .n = (size_t)n, .width = (until - since + n - 1) / n};
	list_stream_answer(r, &l->list);
}
