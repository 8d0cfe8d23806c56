/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs with all policies, and schedules that judge_life.py can compute by itself. */
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/time/zone_cache.h"
#include "daemon/api/submit/job_change.h"
#include "daemon/api/submit/submission.h"
#include "sim/life.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/read/single.h"
#include <inttypes.h>
#include <stdlib.h>

static const char *const queues[QUEUES] = {"default", "bulk", "slow", "night"};

struct life_job *life_job_of(struct life *l, int64_t id)
{
	if (id < 1 || (size_t)id > l->n_jobs || l->jobs[id - 1].id != id)
		abort(); /* job ids are consecutive, because only the simulation adds jobs */
	return &l->jobs[id - 1];
}

static void put_instant(struct buf *b, const char *name, usec_t t)
{
	char text[RFC3339_MAX];

	buf_printf(b, ",\"%s\":\"%s\"", name, rfc3339_format(t, text));
}

#define CRONS 15

static int64_t any_cron(struct life *l, int64_t first)
{
	return life_between(l, first, CRONS - 1);
}

/* A cron expression, an interval, or a single time. */
static void put_schedule(struct life *l, struct buf *b)
{
	static const char *const crons[CRONS] = {"*/5 * * * *", "* * * * *", "*/10 * * * *", "0 * * * *", "15,45 * * * *",
		"*/20 8-20 * * *", "0 */2 * * *", "30 3 * * *", "0 9-17 * * 1-5", "0 0 * * 0", "10 4 1,15 * *",
		"30 2 * * *", "15 1-3 * * *", "*/20 2 * * *", "0,30 0-1 * * *"};
	int64_t first = l->o.span > 7 * USEC_DAY ? 6 : 0; /* a simulation of more than a week uses rare schedules */
	usec_t at = (l->now + life_duration(l, USEC_MIN, l->o.span)) / USEC_SEC * USEC_SEC;
	char text[RFC3339_MAX];

	switch (life_between(l, 0, 9)) {
	case 0:
		buf_printf(b, "[\"every %" PRId64 "s\"]", life_between(l, first ? 7200 : 30, first ? 86400 : 7200));
		break;
	case 1:
		buf_printf(b, "[\"%s\"]", rfc3339_format(at, text));
		break;
	case 2:
		buf_printf(b, "[\"%s\",\"%s\"]", crons[any_cron(l, first)], crons[any_cron(l, first)]);
		break;
	default:
		buf_printf(b, "[\"%s\"]", crons[any_cron(l, first)]);
	}
}

static void put_start_policy(struct life *l, struct buf *b)
{
	static const char *const overlaps[] = {"skip", "queue", "queue:3", "replace", "allow"};
	static const char *const catchups[] = {"none", "latest", "all", "all:3", "all:20"};
	const char *overlap = overlaps[life_between(l, 0, 4)];

	if (life_chance(l, 80))
		buf_printf(b, ",\"overlap\":\"%s\"", overlap);
	if (text_equal(overlap, "allow") && life_chance(l, 50))
		buf_printf(b, ",\"max_running\":%" PRId64, life_between(l, 1, 3));
	if (life_chance(l, 70))
		buf_printf(b, ",\"catchup\":\"%s\"", catchups[life_between(l, 0, 4)]);
	if (life_chance(l, 15))
		buf_printf(b, ",\"deadline\":%" PRId64, life_between(l, 1, 1800));
	if (life_chance(l, 15))
		buf_printf(b, ",\"expires\":%" PRId64, life_between(l, 60, 7200));
	if (life_chance(l, 8))
		buf_printf(b, ",\"rate\":\"%" PRId64 "/%" PRId64 "m\"", life_between(l, 1, 4), life_between(l, 1, 90));
	if (life_chance(l, 6))
		buf_str(b, ",\"when\":[\"load<4\"]");
}

static void put_retry_policy(struct life *l, struct buf *b)
{
	static const char *const backoffs[] = {"fixed:30s", "fixed:10m", "exp:10s..10m", "exp:1s..1h"};
	static const char *const rules[] = {"75=retry,78=dead", "0|2=ok", "100=pause,1=fail", "2=retry,78=dead,0=ok"};

	if (life_chance(l, 40)) {
		buf_printf(b, ",\"retries\":%" PRId64, life_between(l, 1, 5));
		if (life_chance(l, 70))
			buf_printf(b, ",\"backoff\":\"%s\"", backoffs[life_between(l, 0, 3)]);
	}
	if (life_chance(l, 30))
		buf_printf(b, ",\"on_exit\":\"%s\"", rules[life_between(l, 0, 3)]);
	if (life_chance(l, 20))
		buf_str(b, ",\"on_lost\":\"fail\"");
	if (life_chance(l, 20))
		buf_printf(b, ",\"timeout\":%" PRId64, life_between(l, 5, 1800));
	if (life_chance(l, 10)) /* its time would begin with the gate, if that is recorded as started */
		buf_printf(b, ",\"run_timeout\":%" PRId64, life_between(l, 60, 7200));
	else if (life_chance(l, 20))
		buf_str(b, ",\"gate\":\"g\"");
	if (life_chance(l, 70))
		buf_str(b, ",\"checkpoint\":\"yes\",\"state_size\":65536");
}

/* Links to one or two jobs of the owner; false: there is none. */
static bool put_after(struct life *l, uint32_t uid, struct buf *b)
{
	static const char *const whens[] = {"", "", ":success", ":failure", ":any", ":exit=2"};
	int64_t found[2];
	size_t n = 0, wanted = life_chance(l, 30) ? 2 : 1;

	for (size_t i = 0; i < l->n_jobs && n < wanted; i++) {
		const struct life_job *j = &l->jobs[(i + (size_t)life_random(l)) % l->n_jobs];

		if (j->uid == uid && (n == 0 || found[0] != j->id))
			found[n++] = j->id;
	}
	if (n == 0)
		return false;
	buf_str(b, "\"after\":[");
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "%s\"%" PRId64 "%s\"", i ? "," : "", found[i], whens[life_between(l, 0, ELEMENTS(whens) - 1)]);
	buf_printf(b, "],\"after_mode\":\"%s\"", life_chance(l, 50) ? "any" : "all");
	return true;
}

static void put_spec(struct life *l, const char *queue, uint32_t uid, struct buf *b)
{
	static const char *const zones[] = {"UTC", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
		"America/Santiago", "Asia/Kathmandu"};

	buf_printf(b, "{\"command\":[\"x\"],\"tz\":\"%s\",", zones[life_between(l, 0, ELEMENTS(zones) - 1)]);
	if (!life_chance(l, 25) || !put_after(l, uid, b)) {
		buf_str(b, "\"schedule\":");
		put_schedule(l, b);
	}
	if (life_chance(l, 10))
		buf_printf(b, ",\"jitter\":%" PRId64, life_between(l, 1, 900));
	put_instant(b, "until", l->end);
	if (life_chance(l, 60))
		buf_printf(b, ",\"priority\":%" PRId64, life_between(l, -5, 5));
	if (!text_equal(queue, "default"))
		buf_printf(b, ",\"queue\":\"%s\"", queue);
	if (life_chance(l, 40))
		buf_printf(b, ",\"tags\":{\"team\":\"t%" PRId64 "\"}", life_between(l, 0, 2));
	put_start_policy(l, b);
	put_retry_policy(l, b);
	buf_str(b, "}");
}

static struct habits habits_of(struct life *l)
{
	struct habits h = {.shortest = USEC_MSEC, .longest = 20 * USEC_SEC, .ok = 90, .odd = 30};

	switch (life_between(l, 0, 9)) {
	case 0: /* often longer than the interval of its schedule */
		h.longest = 3 * USEC_HOUR;
		h.shortest = USEC_MIN;
		break;
	case 1:
		h.ok = 5;
		break;
	case 2:
		h.ok = 50;
		h.odd = 80;
		break;
	case 3:
		h.longest = 10 * USEC_MIN;
		break;
	default:
		break;
	}
	return h;
}

static bool add_job(struct life *l)
{
	static const char *const owners[OWNERS] = {"ann", "bob", "cyd", "dan"};
	const char *queue = queues[life_chance(l, 50) ? 0 : life_between(l, 0, QUEUES - 1)];
	uint32_t owner = (uint32_t)life_between(l, 0, OWNERS - 1);
	AUTO_DONE(submission) s;
	AUTO(op) *op = op_new(OP_JOB_ADD, NULL, NULL);
	struct err e = {};

	submission_init(&s);
	put_spec(l, queue, 1000 + owner, &s.body);
	s.max_body = 1 << 20;
	s.max_jobs = 1;
	s.now = l->now;
	s.uid = 1000 + owner;
	s.owner = xstrdup(owners[owner]);
	if (!submission_prepare(&s, l->zones, &e)) {
		if (text_starts(e.field, "schedule"))
			return false; /* the time has just passed, or the schedule has no slot before the end */
		fprintf(stderr, "refused: %s: %s\n", e.field, e.msg);
		abort();
	}
	submission_set_owner(&s);
	job_add_op(op)->job = s.jobs[0];
	if (!life_apply_one(l, op)) {
		fprintf(stderr, "not added: %s\n", op->err.msg);
		abort();
	}
	l->jobs = xrealloc(l->jobs, (l->n_jobs + 1) * sizeof(*l->jobs));
	l->jobs[l->n_jobs++] = (struct life_job){.id = job_add_op(op)->job.id, .uid = s.uid, .queue = queue,
		.spec = xstrdup(s.v[0].text), .revision = 1, .habits = habits_of(l)};
	life_say(l, "job", "\"id\":%" PRId64 ",\"uid\":%" PRId64 ",\"spec\":%s", job_add_op(op)->job.id, s.uid, s.v[0].text);
	return true;
}

/* ---- changes ---- */

static void put_change(struct life *l, struct buf *b)
{
	static const char *const overlaps[] = {"skip", "queue", "queue:3", "replace", "allow"};
	static const char *const catchups[] = {"none", "latest", "all", "all:3", "all:20"};

	switch (life_between(l, 0, 9)) {
	case 0:
		buf_printf(b, "{\"overlap\":\"%s\"}", overlaps[life_between(l, 0, 4)]);
		break;
	case 1:
		buf_printf(b, "{\"catchup\":\"%s\"}", catchups[life_between(l, 0, 4)]);
		break;
	case 2:
		buf_printf(b, "{\"priority\":%" PRId64 "}", life_between(l, -5, 5));
		break;
	case 3:
		buf_printf(b, "{\"deadline\":%" PRId64 "}", life_between(l, 1, 1800));
		break;
	case 4:
		buf_printf(b, "{\"retries\":%" PRId64 ",\"backoff\":\"fixed:%" PRId64 "s\"}", life_between(l, 1, 5),
			life_between(l, 1, 900));
		break;
	case 5:
		buf_printf(b, "{\"jitter\":%" PRId64 "}", life_between(l, 0, 900));
		break;
	default:
		buf_str(b, "{\"schedule\":");
		put_schedule(l, b);
		buf_str(b, "}");
	}
}

/* A refused change, for example to a time in the past, leaves the job unchanged. */
void life_change_job(struct life *l, struct life_job *j)
{
	AUTO_DONE(buf) body = {};
	AUTO(job) *job = NULL;
	struct job_change a = {.now = l->now};
	AUTO(op) *op = op_new(OP_JOB_CHANGE, NULL, NULL);
	struct err e = {};
	json_t *patch;

	put_change(l, &body);
	patch = json_loads(body.data, 0, NULL);
	if (!patch || !store_job_get(l->store, -1, j->id, &job, &e))
		abort();
	a.job = job;
	if (job_change_merge(&a, patch, l->zones, &e) && a.changed) {
		op_copy(job_change_op(op), a.change);
		job_change_op(op)->uid = -1;
		if (life_apply_one(l, op)) {
			free(j->spec);
			j->spec = xstrdup(a.text);
			j->revision = job_change_op(op)->revision;
			life_say(l, "change", "\"job\":%" PRId64 ",\"spec\":%s", j->id, a.text);
		}
	}
	job_change_done(&a);
	json_decref(patch);
}

void life_add_jobs(struct life *l, int n)
{
	for (int i = 0; i < n;)
		i += add_job(l);
}
