/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for runs to end; copies their output meanwhile. */
#include "jobctl/follow.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/run_output.h"
#include "jobctl/render/words.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define OPEN_STATES "queued,claimed,running"
#define PAUSE_FIRST (20 * USEC_MSEC) /* between polls; doubled up to PAUSE_LAST */
#define PAUSE_LAST (2 * USEC_SEC)
#define AWAY_MAX (30 * USEC_SEC) /* a daemon that restarts may be unreachable for this long */

bool follow_run_is_final(const json_t *run)
{
	const char *name = member_text(run, "state");
	enum run_state state;

	return name && run_state_parse(name, &state) && run_state_final(state);
}

static void sleep_usec(usec_t d)
{
	const struct timespec t = {.tv_sec = d / USEC_SEC, .tv_nsec = d % USEC_SEC * 1000};

	nanosleep(&t, NULL);
}

static bool deadline_passed(usec_t until)
{
	return until >= 0 && clock_boot(&clock_system) >= until;
}

/*
 * Sleeps before the next request, twice as long each time, but not beyond 'until' or the time
 * 'due'.
 */
static void sleep_before_poll(usec_t *pause, usec_t until, usec_t due)
{
	usec_t d = *pause, now = clock_now(&clock_system);

	if (until >= 0 && until - clock_boot(&clock_system) < d)
		d = until - clock_boot(&clock_system);
	if (due > now && due - now < d)
		d = due - now;
	if (d > 0)
		sleep_usec(d);
	*pause = *pause * 2 < PAUSE_LAST ? *pause * 2 : PAUSE_LAST;
}

static bool timed_out(struct err *e)
{
	return err_set(e, ERR_BUSY, "timed out waiting");
}

/*
 * Whether a request that failed is repeated: the daemon was reachable before and is not now. *away
 * is the time of the first failure, 0 while the daemon answers; 'until' as for follow_wait().
 */
static bool retry_request(const struct err *e, usec_t *away, usec_t until)
{
	usec_t now = clock_boot(&clock_system);

	if (e->kind != ERR_UNREACHABLE && e->kind != ERR_BUSY)
		return false;
	if (*away == 0) {
		*away = now;
		if (e->kind == ERR_BUSY)
			ctl_say("still waiting: %s", e->msg);
		else
			ctl_say("the daemon is not reachable; waiting for it");
	}
	if (now - *away > AWAY_MAX || deadline_passed(until))
		return false;
	sleep_usec(100 * USEC_MSEC);
	return true;
}

/* The last run of an array that has the newest one first. */
static json_t *oldest(const json_t *runs)
{
	size_t n = json_array_size(runs);

	return n ? json_incref(json_array_get(runs, n - 1)) : NULL;
}

bool follow_find(struct ctl *c, int64_t job, usec_t until, json_t **ret, struct err *e)
{
	const struct ref ref = {.text = "", .job = job};
	usec_t pause = PAUSE_FIRST;
	int64_t newest_before = -1;

	for (;;) {
		json_auto_t *open = NULL, *any = NULL, *def = NULL;
		int64_t newest;
		usec_t next;

		if (!api_runs(c, job, OPEN_STATES, 100, &open, e))
			return false;
		if ((*ret = oldest(open)))
			return true;
		/*
		 * 'any' is read last, so that it contains a run that began and ended between the
		 * requests.
		 */
		if (!api_job(c, &ref, &def, e) || !api_runs(c, job, NULL, 1, &any, e))
			return false;
		newest = member_int(json_array_get(any, 0), "id");
		next = member_time(def, "next_at");
		if (newest_before < 0)
			newest_before = newest;
		if (newest > newest_before || !next ||
			strcmp(member_text(def, "state"), "active") != 0) {
			*ret = json_incref(json_array_get(any, 0));
			return true;
		}
		if (deadline_passed(until))
			return timed_out(e);
		sleep_before_poll(&pause, until, next);
	}
}

bool follow_first(struct ctl *c, int64_t job, json_t **ret, struct err *e)
{
	const struct ref ref = {.text = "", .job = job};
	usec_t pause = PAUSE_FIRST;
	bool said = false;

	for (;;) {
		json_auto_t *def = NULL, *any = NULL;
		enum job_state state;

		/*
		 * The runs are read last: a job that ends between the requests has its run by then.
		 */
		if (!api_job(c, &ref, &def, e) || !api_runs(c, job, NULL, 1, &any, e))
			return false;
		if (json_array_size(any) > 0) {
			*ret = json_incref(json_array_get(any, 0));
			return true;
		}
		if (!job_state_parse(member_text(def, "state"), &state) || state >= JOB_FINISHED) {
			*ret = NULL;
			return true;
		}
		if (!said)
			ctl_say("job %" PRId64
				" has no run yet; waiting for one (jobctl why %" PRId64 ")",
				job, job);
		said = true;
		sleep_before_poll(&pause, -1, member_time(def, "next_at"));
	}
}

bool follow_wait(struct ctl *c, int64_t run, usec_t until, json_t **ret, struct err *e)
{
	usec_t away = 0;

	for (;;) {
		json_auto_t *now = NULL;
		usec_t left =
			until < 0 ? API_WAIT_MAX * USEC_SEC : until - clock_boot(&clock_system);

		if (left < 0)
			left = 0;
		/* The API takes whole seconds; a fraction is slept below. */
		if (!api_run_wait(c, run,
			    (int)(left / USEC_SEC < API_WAIT_MAX ? left / USEC_SEC : API_WAIT_MAX),
			    &now, e)) {
			if (retry_request(e, &away, until))
				continue;
			return false;
		}
		away = 0;
		if (follow_run_is_final(now)) {
			*ret = json_incref(now);
			return true;
		}
		if (deadline_passed(until))
			return timed_out(e);
		if (left < USEC_SEC)
			sleep_usec(left < 50 * USEC_MSEC ? left : 50 * USEC_MSEC);
	}
}

/*
 * Whether this attempt has started. The number of a claimed run includes an attempt that has not.
 */
static bool attempt_begun(const json_t *run, int64_t attempt)
{
	int64_t tries = member_int(run, "attempt");

	if (strcmp(member_text(run, "state"), "claimed") == 0)
		tries--;
	return tries >= attempt;
}

/* Waits until this attempt has started or the run has ended. */
static bool wait_attempt(struct ctl *c, int64_t run, int64_t attempt, json_t **ret, struct err *e)
{
	usec_t pause = PAUSE_FIRST, away = 0;

	for (;;) {
		json_auto_t *now = NULL;

		if (!api_run_id(c, run, &now, e)) {
			if (retry_request(e, &away, -1))
				continue;
			return false;
		}
		if (follow_run_is_final(now) || attempt_begun(now, attempt)) {
			*ret = json_incref(now);
			return true;
		}
		sleep_before_poll(&pause, -1, member_time(now, "due_at"));
	}
}

/*
 * Copies the output of one attempt until its end. After an interruption it continues at the same
 * offset.
 */
static bool copy_attempt_output(struct ctl *c, struct run_output_range place, bool raw,
	struct err *e)
{
	AUTO_DONE(run_output) o = {.raw = raw};
	int64_t from = place.from, total, dropped;
	usec_t away = 0;

	for (;;) {
		int64_t before = o.bytes;

		place.from = from + o.bytes;
		if (run_output_copy(c, &o, &place, &total, &dropped, e)) {
			run_output_say_note(c);
			return true;
		}
		if (o.bytes > before)
			away = 0;
		if (!retry_request(e, &away, -1))
			return false;
	}
}

bool follow_output(struct ctl *c, const struct follow_from *f, json_t **ret, struct err *e)
{
	int64_t attempt = f->attempt;

	for (;;) {
		json_auto_t *now = NULL;
		struct run_output_range place = {.run = f->run, .attempt = attempt, .follow = true};

		if (!wait_attempt(c, f->run, attempt > 0 ? attempt : 1, &now, e))
			return false;
		if (member_int(now, "attempt") < (attempt > 0 ? attempt : 1)) {
			*ret = json_incref(now);
			return true;
		}
		if (!attempt)
			place.attempt = member_int(now, "attempt");
		if (place.attempt == f->attempt)
			place.from = f->offset;
		if (!copy_attempt_output(c, place, f->raw, e))
			return false;
		attempt = place.attempt + 1;
	}
}

void follow_say(const json_t *run, bool hint)
{
	AUTO_DONE(buf) line = {};
	AUTO_DONE(buf) result = {};
	usec_t started = member_time(run, "started_at"), ended = member_time(run, "ended_at");
	const char *state = member_text(run, "state");
	char took[WORDS_MAX];

	buf_str(&line, "run ");
	ref_of_run(run, &line);
	buf_printf(&line, " %s%s",
		strcmp(state, "cancelled") == 0 || strcmp(state, "skipped") == 0 ? "was " : "",
		strcmp(state, "timed_out") == 0 ? "timed out" : state);
	if (started && ended)
		buf_printf(&line, " after %s", words_duration(ended - started, took));
	words_result(run, &result);
	if (result.len)
		buf_printf(&line, ": %s", result.data);
	if (hint && started && (strcmp(state, "failed") == 0 || strcmp(state, "timed_out") == 0)) {
		buf_str(&line, " (jobctl log ");
		ref_of_run(run, &line);
		buf_char(&line, ')');
	}
	ctl_say("%s", line.data);
}

int follow_exit(const json_t *run, bool propagate)
{
	static const struct {
		const char *state;
		int code;
	} codes[] = {
		{"cancelled", EXIT_RUN_CANCELLED},
		{"skipped", EXIT_RUN_SKIPPED},
		{"expired", EXIT_RUN_SKIPPED},
		{"timed_out", EXIT_RUN_TIMED_OUT},
	};
	const json_t *code = json_object_get(run, "exit_code");
	int64_t sig = member_int(run, "signal");
	const char *state = member_text(run, "state");

	if (state && strcmp(state, "succeeded") == 0)
		return 0; /* --on-exit can declare other exit codes a success */
	if (propagate && sig > 0)
		return 128 + (int)sig;
	if (propagate && json_is_integer(code) && json_integer_value(code) >= 0)
		return (int)json_integer_value(code);
	for (size_t i = 0; state && i < ELEMENTS(codes); i++)
		if (strcmp(codes[i].state, state) == 0)
			return codes[i].code;
	return EXIT_RUN_FAILED;
}
