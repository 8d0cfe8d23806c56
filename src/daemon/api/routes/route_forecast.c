/* SPDX-License-Identifier: Apache-2.0 */
/* Route that lists the slots of the next time, for one job or for those that are due first. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/time/schedule_set.h"
#include "core/time/zone_cache.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/store_read.h"
#include "store/read/list/list_jobs.h"
#include "store/store.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdio.h>

#define SLOTS_OF_JOB 1000 /* at most so many slots of one job ... */
#define SLOTS_TOTAL 20000 /* ... and of all jobs */
#define PAGE_JOBS 100

struct forecast_query {
	struct store_read q;
	char *ref;                /* owned; NULL: all jobs */
	usec_t since, until;
	size_t limit, slots_max;  /* jobs; slots of a job */
	struct zone_cache *zones; /* borrowed: of the reader thread */
	size_t jobs, slots;       /* written so far */
	bool complete;
};

static void free_forecast(struct store_read *q)
{
	free(((struct forecast_query *)q)->ref);
	free(q);
}

static bool read_schedule(const struct job *j, struct zone_cache *zones, struct job_spec *spec,
	struct schedule_set **ret)
{
	struct schedule_context c;
	char number[24];

	if (!spec_json_from_text(j->spec, spec, NULL))
		return false;
	snprintf(number, sizeof(number), "%" PRId64, j->id);
	c = (struct schedule_context){.anchor = j->created_at,
		.id = j->name ? j->name : number,
		.gap = (enum dst_gap)spec->dst_gap,
		.fold = (enum dst_fold)spec->dst_fold,
		.from = spec->from,
		.until = spec->until,
		.accepted = true};
	return zone_cache_get(zones, spec->tz, &c.zone, NULL) &&
	       schedule_set_parse(&spec->schedule, &c, ret, NULL);
}

/* Writes the slots as seconds since 1970, to keep the answer small. */
static void write_slots(struct forecast_query *f, const struct job *j, const struct schedule_set *set,
	struct buf *out)
{
	usec_t slot = f->since - 1;
	size_t n = 0;

	/* the slot of a job that runs once is in its row; a job after its own end has only that one */
	if (schedule_set_follows(set) || schedule_set_kind(set) == SCHEDULE_NOW) {
		if (j->next_slot >= f->since && j->next_slot < f->until)
			buf_printf(out, "%" PRId64, j->next_slot / USEC_SEC);
		return;
	}
	while (schedule_set_next(set, slot, &slot) && slot < f->until) {
		if (n == f->slots_max || f->slots == SLOTS_TOTAL) {
			f->complete = false;
			return;
		}
		buf_printf(out, "%s%" PRId64, n++ ? "," : "", slot / USEC_SEC);
		f->slots++;
	}
}

static void write_forecast(struct forecast_query *f, const struct job *j)
{
	AUTO(schedule_set) *set = NULL;
	__attribute__((cleanup(job_spec_done))) struct job_spec spec = {};
	struct buf *out = &f->q.out;
	json_auto_t *name = json_value_text(j->name);

	if (j->state > JOB_PAUSED || !read_schedule(j, f->zones, &spec, &set))
		return;
	buf_printf(out, "%s{\"id\":%" PRId64 ",\"name\":", f->jobs++ ? "," : "", j->id);
	json_value_write(name, out);
	buf_printf(out, ",\"paused\":%s,\"slots\":[", j->state == JOB_PAUSED ? "true" : "false");
	write_slots(f, j, set, out);
	buf_str(out, "]}");
}

/* The jobs in the order of their next run, until that is after the range. */
static bool forecast_all(struct store *s, struct forecast_query *f, struct err *e)
{
	struct job_filter filter = {.uid = f->q.scope,
		.states = 1u << JOB_ACTIVE | 1u << JOB_PAUSED,
		.sort = JOB_SORT_NEXT,
		.limit = PAGE_JOBS};
	AUTO_DONE(job_search) search = {};
	struct job_place place = {};
	bool more = true;

	while (more) {
		__attribute__((cleanup(job_list_done))) struct job_list page = {};

		if (!list_jobs_sorted(s, &filter, &place, &search, &page, e))
			return false;
		more = page.next != 0;
		for (size_t i = 0; i < page.n; i++) {
			if (!page.v[i]->next_slot || page.v[i]->next_slot >= f->until)
				return true;
			if (f->jobs == f->limit || f->slots == SLOTS_TOTAL) {
				f->complete = false;
				return true;
			}
			write_forecast(f, page.v[i]);
		}
	}
	return true;
}

static bool run_forecast(struct store *s, struct store_read *q, struct err *e)
{
	struct forecast_query *f = (struct forecast_query *)q;
	AUTO(job) *j = NULL;

	f->complete = true;
	buf_str(&q->out, "{\"jobs\":[");
	if (f->ref ? !store_read_job(s, q->scope, f->ref, &j, e) : !forecast_all(s, f, e))
		return false;
	if (j)
		write_forecast(f, j);
	buf_printf(&q->out, "],\"complete\":%s}\n", f->complete ? "true" : "false");
	return true;
}

void route_forecast(struct request *r)
{
	struct forecast_query *f;
	usec_t now = request_now(r), since = request_number(r, "since", now);
	usec_t until = request_number(r, "until", since + USEC_DAY);
	struct err e = {};

	if (until <= since || until - since > 400 * USEC_DAY) {
		err_field(&e, "until", "'until' must be after 'since', by at most 400 days");
		request_answer_err(r, &e);
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->ref = xstrdup(request_text(r, "job"));
	f->since = since > now ? since : now;
	f->until = until;
	f->limit = (size_t)request_number(r, "limit", 200);
	f->slots_max = (size_t)request_number(r, "slots", SLOTS_OF_JOB);
	f->zones = request_reader_zones(r);
	f->q.run = run_forecast;
	f->q.free = free_forecast;
	store_read_start(r, &f->q);
}
