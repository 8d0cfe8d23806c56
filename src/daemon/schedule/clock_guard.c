/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the clock after boots, jumps or suspends; catches up with missed slots. */
#include "daemon/schedule/clock_guard.h"
#include "base/err.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/schedule_cache.h"
#include "store/ops/op.h"
#include "store/ops/run/late_runs.h"
#include <inttypes.h>
#include <sys/timex.h>
#include <unistd.h>

#define TIMESYNC "/run/systemd/timesync"
/* While the clock is not synchronised, or after the store refused the operation. */
#define CHECK_INTERVAL USEC_SEC
/* While the clock is wrong; setting it wakes the daemon earlier. */
#define CHECK_INTERVAL_WRONG USEC_MIN

struct clock_guard {
	struct clock_guard_options o;
	enum clock_trust trust;
	usec_t began;         /* boottime */
	usec_t made_since;    /* the wall clock at 'began' */
	usec_t asked_at;      /* boottime of the last query of the kernel; 0: never */
	bool synchronised;    /* the kernel's answer */
	bool started, asking; /* asking: OP_LATE is under way */
	bool caught_up;
	bool set_back;
	usec_t since;         /* when a daemon last ran with a trusted clock */
	usec_t alarm;
	usec_t not_before;    /* boottime */
	int64_t after;
};

static bool kernel_synchronised(void)
{
	struct timex t = {};
	int r = adjtimex(&t);

	/*
	 * A unit that may not set the clock (ProtectClock=) may not call adjtimex() either.
	 * systemd-timesyncd creates a file when the clock is synchronised.
	 */
	if (r < 0)
		return access(TIMESYNC, F_OK) < 0 || access(TIMESYNC "/synchronized", F_OK) == 0;
	return r != TIME_ERROR || !(t.status & STA_UNSYNC);
}

struct clock_guard *clock_guard_new(const struct clock_guard_options *o)
{
	struct clock_guard *t = xcalloc(1, sizeof(*t));

	*t = (struct clock_guard){.o = *o, .began = clock_boot(o->clock), .made_since = clock_now(o->clock),
		.alarm = USEC_NEVER};
	if (!t->o.synchronised)
		t->o.synchronised = kernel_synchronised;
	return t;
}

void clock_guard_free(struct clock_guard *t)
{
	free(t);
}

void clock_guard_set_wait(struct clock_guard *t, usec_t wait)
{
	t->o.wait = wait;
}

void clock_guard_set_alarm(struct clock_guard *t, usec_t alarm)
{
	t->alarm = alarm;
}

enum clock_trust clock_guard_trust(const struct clock_guard *t)
{
	return t ? t->trust : CLOCK_GOOD;
}

usec_t clock_guard_made_since(const struct clock_guard *t)
{
	return clock_guard_trust(t) == CLOCK_UNSURE ? t->made_since : 0;
}

usec_t clock_guard_left(const struct clock_guard *t)
{
	usec_t left = clock_guard_trust(t) == CLOCK_UNSURE ? t->began + t->o.wait - clock_boot(t->o.clock) : 0;

	return left > 0 ? left : 0;
}

/* ---- catching up ---- */

static void on_catch_up_done(struct op *op, void *arg)
{
	struct clock_guard *t = arg;

	t->asking = false;
	if (!op->ok) {
		log_warning("could not catch up with missed slots, trying again in 1 s: %s",
			op->err.msg);
		t->not_before = clock_boot(t->o.clock) + CHECK_INTERVAL;
	} else {
		if (late_runs_op(op)->missed)
			log_info("%zu planned runs were missed while no daemon was running",
				late_runs_op(op)->missed);
		if (late_runs_op(op)->undone)
			log_warning("the clock was set back: %zu planned runs are planned again",
				late_runs_op(op)->undone);
		t->after = late_runs_op(op)->more;
		t->set_back = false;
		t->caught_up = t->after == 0;
	}
	op_free(op);
	t->o.on_change(t->o.arg);
}

static void submit_catch_up(struct clock_guard *t, usec_t now)
{
	struct op *op = op_new(OP_LATE, on_catch_up_done, t);

	op_fill(late_runs_op(op), .since = t->since, .now = now, .after = t->after,
		.set_back = t->set_back, .fn = schedule_cache_missed,
		.fn_arg = t->o.schedule_cache);
	t->asking = true;
	store_thread_submit(t->o.store, op);
}

void clock_guard_start(struct clock_guard *t, usec_t last_seen)
{
	t->started = true;
	t->since = last_seen;
}

/* ---- trust in the clock ---- */

/* Called for every run, so it queries the kernel at most once in CHECK_INTERVAL, and not after the wait is over. */
static bool clock_is_synchronised(struct clock_guard *t, usec_t up)
{
	if (up - t->began >= t->o.wait)
		return true;
	if (!t->asked_at || up - t->asked_at >= CHECK_INTERVAL) {
		t->synchronised = t->o.synchronised();
		t->asked_at = up;
	}
	return t->synchronised;
}

static void update_trust(struct clock_guard *t, usec_t now)
{
	enum clock_trust was = t->trust;
	usec_t up = clock_boot(t->o.clock);
	char text[RFC3339_MAX];

	t->trust = clock_trust_judge(now, up, t->began, clock_is_synchronised(t, up), t->o.wait);
	if (t->trust == was)
		return;
	if (t->trust == CLOCK_WRONG)
		log_error(
			"the clock shows %s, which is before this program was built: nothing is planned or caught up "
			"until the clock is set",
			rfc3339_format(now, text));
	else if (t->trust == CLOCK_UNSURE)
		log_info("the clock has not been synchronised since boot; slots wait up to %" PRId64
			 " s for that",
			clock_guard_left(t) / USEC_SEC);
	else
		log_info("the clock is trusted: %s", rfc3339_format(now, text));
}

/*
 * After a suspend or a jump of the clock, slots that were due meanwhile are caught up with first.
 */
static void detect_jump(struct clock_guard *t, usec_t now)
{
	enum clock_trust_jump jump =
		t->caught_up ? clock_trust_jump(t->since, t->alarm, now) : JUMP_NONE;

	if (jump == JUMP_AHEAD)
		log_info("no daemon was running for %" PRId64 " s; catching up",
			(now - t->alarm) / USEC_SEC);
	if (jump != JUMP_NONE) {
		t->set_back = jump == JUMP_BACK;
		t->caught_up = false;
		t->after = 0;
	}
	t->alarm = USEC_NEVER;
}

struct clock_guard_verdict clock_guard_pump(struct clock_guard *t)
{
	struct clock_guard_verdict wait = {.again = USEC_NEVER};
	usec_t now = clock_now(t->o.clock);

	if (!t->started || t->asking)
		return wait;
	update_trust(t, now);
	if (t->trust == CLOCK_WRONG)
		return (struct clock_guard_verdict){
			.claim = true, .again = now + CHECK_INTERVAL_WRONG};
	wait.again = now + CHECK_INTERVAL;
	wait.made_since = clock_guard_made_since(t);
	if (t->trust == CLOCK_UNSURE || clock_boot(t->o.clock) < t->not_before)
		return wait;
	if (!t->caught_up && clock_trust_jump(t->since, USEC_NEVER, now) == JUMP_BACK)
		t->set_back = true; /* while no daemon was running */
	detect_jump(t, now);
	if (!t->caught_up && t->o.others && t->o.others(t->o.arg)) {
		t->caught_up = true;
		t->set_back = false;
	}
	if (!t->caught_up) {
		submit_catch_up(t, now);
		return wait;
	}
	t->since = now;
	return (struct clock_guard_verdict){.plan = true, .claim = true, .again = USEC_NEVER};
}
