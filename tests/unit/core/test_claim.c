/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a due run, and whose turn it is: every decision, also against a second opinion. */
#include "core/decide/claim.h"
#include "base/text.h"
#include "core/decide/machine_conditions.h"
#include "unit/unit.h"

#define T0 INT64_C(1800000000000000)

/* A slot of a recurring job that is due now and free to start. */
static struct claim_facts plain(void)
{
	return (struct claim_facts){.now = T0, .slot = T0, .kind = RUN_KIND_SCHEDULE, .recurs = true,
		.policy = {.overlap = OVERLAP_SKIP, .permits = 1}};
}

static void assert_verdict(const struct claim_facts *f, enum claim_verb verb, const char *reason)
{
	struct claim_verdict v = claim_decide(f);

	assert_int_equal(v.verb, verb);
	if (reason)
		assert_string_equal(v.reason, reason);
	else
		assert_null(v.reason);
}

static void a_run_with_a_free_place_starts_and_takes_it(void **state)
{
	struct claim_facts f = plain();

	(void)state;
	assert_verdict(&f, CLAIM_START, NULL);
	assert_true(claim_decide(&f).takes_permit);
	f.policy.permits = 0;
	assert_verdict(&f, CLAIM_START, NULL);
	assert_false(claim_decide(&f).takes_permit);
}

static void a_retry_keeps_its_place(void **state)
{
	struct claim_facts f = plain();

	(void)state;
	f.attempt = 1;
	f.taken = 1;
	f.has_permit = true;
	assert_verdict(&f, CLAIM_START, NULL);
	assert_false(claim_decide(&f).takes_permit);
}

static void each_overlap_word_means_something_else(void **state)
{
	static const struct {
		enum overlap_word word;
		int64_t waiting_max, permits, taken, waiting;
		enum claim_verb verb;
		const char *reason;
		bool replaces;
	} cases[] = {
		{OVERLAP_SKIP, 0, 1, 1, 0, CLAIM_SKIP, "overlap", false},
		{OVERLAP_QUEUE, 1, 1, 1, 0, CLAIM_HOLD, "overlap", false},
		{OVERLAP_QUEUE, 1, 1, 1, 1, CLAIM_SKIP, "limit", false},
		{OVERLAP_QUEUE, 3, 1, 1, 2, CLAIM_HOLD, "overlap", false},
		{OVERLAP_QUEUE, 3, 1, 1, 3, CLAIM_SKIP, "limit", false},
		{OVERLAP_REPLACE, 0, 1, 1, 0, CLAIM_HOLD, "overlap", true},
		{OVERLAP_REPLACE, 0, 1, 1, 5, CLAIM_HOLD, "overlap", true},
		{OVERLAP_ALLOW, 0, 2, 2, 0, CLAIM_HOLD, "limit", false},
		{OVERLAP_ALLOW, 0, 2, 2, 9999, CLAIM_HOLD, "limit", false},
		{OVERLAP_ALLOW, 0, 2, 1, 0, CLAIM_START, NULL, false},
		{OVERLAP_ALLOW, 0, 0, 50, 0, CLAIM_START, NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct claim_facts f = plain();
		struct claim_verdict v;

		f.policy = (struct start_policy){.overlap = cases[i].word, .overlap_waiting = cases[i].waiting_max,
			.permits = cases[i].permits};
		f.taken = cases[i].taken;
		f.waiting = cases[i].waiting;
		assert_verdict(&f, cases[i].verb, cases[i].reason);
		v = claim_decide(&f);
		assert_int_equal(v.replaces, cases[i].replaces);
		assert_int_equal(v.hold, v.verb == CLAIM_HOLD ? HOLD_PERMIT : HOLD_NONE);
		f.forced = true; /* whoever insists is not kept by it */
		assert_verdict(&f, CLAIM_START, NULL);
		assert_int_equal(claim_decide(&f).takes_permit, cases[i].taken < cases[i].permits);
	}
}

static void a_pause_skips_slots_that_others_follow_and_holds_the_rest(void **state)
{
	(void)state;
	for (int stopped = HOLD_PAUSED; stopped <= HOLD_FROZEN; stopped++) {
		const char *reason = stopped == HOLD_FROZEN ? "frozen" : "paused";
		struct claim_facts f = plain();

		f.stopped = f.slot_stopped = (enum run_hold)stopped;
		assert_verdict(&f, CLAIM_SKIP, reason);
		f.attempt = 1;
		assert_verdict(&f, CLAIM_HOLD, reason);
		assert_int_equal(claim_decide(&f).hold, stopped);
		f.attempt = 0;
		f.kind = RUN_KIND_MANUAL;
		assert_verdict(&f, CLAIM_HOLD, reason);
		f.kind = RUN_KIND_BOOT;
		assert_verdict(&f, CLAIM_HOLD, reason);
		f.kind = RUN_KIND_SCHEDULE;
		f.recurs = false;
		assert_verdict(&f, CLAIM_HOLD, reason);
		f.forced = true; /* a pause can be overruled, a freeze cannot ... */
		assert_verdict(&f, stopped == HOLD_FROZEN ? CLAIM_HOLD : CLAIM_START,
			stopped == HOLD_FROZEN ? reason : NULL);
		f.overrides_freeze = true; /* but by an administrator */
		assert_verdict(&f, CLAIM_START, NULL);
	}
}

static void a_pause_is_decided_by_the_slot(void **state)
{
	(void)state;
	for (int stopped = HOLD_PAUSED; stopped <= HOLD_FROZEN; stopped++) {
		const char *reason = stopped == HOLD_FROZEN ? "frozen" : "paused";
		struct claim_facts f = plain();

		f.slot_stopped = (enum run_hold)stopped; /* the pause is over when the run is looked at */
		assert_verdict(&f, CLAIM_SKIP, reason);
		f.recurs = false;
		assert_verdict(&f, CLAIM_START, NULL);
		f.recurs = true;
		f.slot_stopped = HOLD_NONE; /* the slot was before the pause */
		f.stopped = (enum run_hold)stopped;
		assert_verdict(&f, CLAIM_HOLD, reason);
		assert_int_equal(claim_decide(&f).hold, stopped);
	}
}

static void slots_to_be_caught_up_wait_for_each_other(void **state)
{
	struct claim_facts f = plain();

	(void)state;
	f.caught_up = true;
	assert_verdict(&f, CLAIM_START, NULL);
	f.taken = 1;
	f.waiting = 999;
	assert_verdict(&f, CLAIM_HOLD, "overlap");
	assert_int_equal(claim_decide(&f).hold, HOLD_PERMIT);
	f.policy.overlap = OVERLAP_QUEUE; /* a limit that was asked for is kept */
	f.policy.overlap_waiting = 1;
	assert_verdict(&f, CLAIM_SKIP, "limit");
}

static void too_late_is_expired_and_says_by_what(void **state)
{
	struct claim_facts f = plain();

	(void)state;
	f.policy.deadline = 60 * USEC_SEC;
	f.now = f.slot + 60 * USEC_SEC;
	assert_verdict(&f, CLAIM_START, NULL);
	f.now++;
	assert_verdict(&f, CLAIM_EXPIRE, "deadline");
	f.attempt = 1; /* it was begun in time */
	f.has_permit = true;
	assert_verdict(&f, CLAIM_START, NULL);
	f.policy.expires = 100 * USEC_SEC;
	f.now = f.slot + 100 * USEC_SEC;
	assert_verdict(&f, CLAIM_START, NULL);
	f.now++;
	assert_verdict(&f, CLAIM_EXPIRE, "expires");
	f.attempt = 0;
	assert_verdict(&f, CLAIM_EXPIRE, "deadline"); /* what came first */
	f.policy.expires = 50 * USEC_SEC;
	assert_verdict(&f, CLAIM_EXPIRE, "expires");
}

static void an_expired_run_tells_what_kept_it(void **state)
{
	static const char *const kept[][3] = {
		{"overlap", "deadline (overlap)", "expires (overlap)"},
		{"limit", "deadline (limit)", "expires (limit)"},
		{"paused", "deadline (paused)", "expires (paused)"},
		{"frozen", "deadline (frozen)", "expires (frozen)"},
		{"condition", "deadline (condition)", "expires (condition)"},
		{"rate", "deadline (rate)", "expires (rate)"},
		{"lost", "deadline", "expires"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(kept); i++) {
		struct claim_facts f = plain();

		f.held_by = kept[i][0];
		f.now += 10 * USEC_SEC;
		f.policy.deadline = USEC_SEC;
		assert_verdict(&f, CLAIM_EXPIRE, kept[i][1]);
		f.policy.deadline = 0;
		f.policy.expires = USEC_SEC;
		assert_verdict(&f, CLAIM_EXPIRE, kept[i][2]);
	}
}

static void an_unmet_condition_is_looked_at_again_but_not_beyond_the_deadline(void **state)
{
	struct claim_facts f = plain(), later;

	(void)state;
	f.unmet = true;
	assert_verdict(&f, CLAIM_WAIT, "condition");
	assert_in_range(claim_decide(&f).at, f.now + 1, f.now + CLAIM_CHECK_INTERVAL);
	later = f;
	later.now++; /* looked at together with the first */
	assert_int_equal(claim_decide(&later).at, claim_decide(&f).at);
	later.now = claim_decide(&f).at;
	assert_int_equal(claim_decide(&later).at, later.now + CLAIM_CHECK_INTERVAL);
	f.policy.deadline = 4 * USEC_SEC;
	assert_int_equal(claim_decide(&f).at, f.slot + 4 * USEC_SEC + 1); /* the first moment that is too late */
	f.now = claim_decide(&f).at;
	assert_verdict(&f, CLAIM_EXPIRE, "deadline");
	f.now = f.slot;
	f.taken = 1; /* a slot that overlaps does not wait for its condition */
	assert_verdict(&f, CLAIM_SKIP, "overlap");
}

static void a_rate_says_when(void **state)
{
	struct claim_facts f = plain();

	(void)state;
	f.rate_at = f.now;
	assert_verdict(&f, CLAIM_START, NULL);
	f.rate_at = f.now + 7;
	assert_verdict(&f, CLAIM_WAIT, "rate");
	assert_int_equal(claim_decide(&f).at, f.now + 7);
	f.unmet = true; /* both: the condition is asked first, and the rate is not used up by it */
	assert_verdict(&f, CLAIM_WAIT, "condition");
}

/* The same rules written down another way: as a list of what must not be, each with its outcome. */
static enum claim_verb second_opinion(const struct claim_facts *f)
{
	usec_t age = f->now - f->slot;
	bool late = (f->policy.expires && age > f->policy.expires) ||
		(f->policy.deadline && f->attempt == 0 && age > f->policy.deadline);
	bool stopped = (f->stopped == HOLD_FROZEN && !f->overrides_freeze) || (f->stopped == HOLD_PAUSED && !f->forced);
	bool passes_over = f->slot_stopped && f->recurs && f->attempt == 0 && f->kind == RUN_KIND_SCHEDULE;
	bool crowded = f->policy.permits && !f->has_permit && !f->forced && f->taken >= f->policy.permits;
	bool skips = f->attempt == 0 && ((f->policy.overlap == OVERLAP_SKIP && !f->caught_up) ||
		(f->policy.overlap == OVERLAP_QUEUE && f->waiting >= f->policy.overlap_waiting));

	return late ? CLAIM_EXPIRE
	     : passes_over ? CLAIM_SKIP
	     : stopped ? CLAIM_HOLD
	     : crowded ? (skips ? CLAIM_SKIP : CLAIM_HOLD)
	     : f->unmet || f->rate_at > f->now ? CLAIM_WAIT : CLAIM_START;
}

static int pick(unsigned *rest, unsigned n)
{
	int i = (int)(*rest % n);

	*rest /= n;
	return i;
}

static void all_combinations_are_decided_as_written_down_twice(void **state)
{
	static const usec_t limits[] = {0, 10, 30};
	static const enum run_hold stops[] = {HOLD_NONE, HOLD_PAUSED, HOLD_FROZEN};
	size_t seen[CLAIM_VERB_MAX] = {};

	(void)state;
	for (unsigned n = 0; n < 4u * 3 * 3 * 3 * 3 * 3 * 2 * 2 * 3 * 3 * 2 * 2 * 2 * 2 * 2; n++) {
		struct claim_facts f = {.slot = T0};
		struct claim_verdict v;
		unsigned rest = n;

		f.policy.overlap = (enum overlap_word)pick(&rest, 4);
		f.policy.overlap_waiting = pick(&rest, 3);
		f.policy.permits = pick(&rest, 3);
		f.policy.deadline = limits[pick(&rest, 3)];
		f.policy.expires = limits[pick(&rest, 3)];
		f.stopped = stops[pick(&rest, 3)];
		f.attempt = pick(&rest, 2);
		f.forced = pick(&rest, 2);
		f.overrides_freeze = f.forced && pick(&rest, 2);
		f.kind = (enum run_kind)pick(&rest, 3);
		f.taken = pick(&rest, 3);
		f.recurs = pick(&rest, 2);
		f.unmet = pick(&rest, 2);
		f.has_permit = pick(&rest, 2);
		f.now = T0 + 20 * pick(&rest, 2);
		f.waiting = 1;
		f.slot_stopped = stops[n % 7 % 3];
		f.caught_up = n % 11 == 0;
		f.rate_at = n % 5 == 0 ? f.now + 1 : 0;
		v = claim_decide(&f);
		assert_int_equal(v.verb, second_opinion(&f));
		assert_int_equal(v.reason == NULL, v.verb == CLAIM_START);
		assert_int_equal(v.hold != HOLD_NONE, v.verb == CLAIM_HOLD);
		assert_true(v.verb != CLAIM_WAIT || v.at > f.now);
		assert_true(!v.takes_permit || (v.verb == CLAIM_START && f.taken < f.policy.permits));
		seen[v.verb]++;
	}
	for (int i = 0; i < CLAIM_VERB_MAX; i++)
		assert_true(seen[i] > 100);
}

/* ---- whose turn ---- */

static size_t turn(const struct claim_lane *v, size_t n)
{
	size_t i = n;

	return claim_pick(v, n, &i) ? i : n;
}

static void no_lane_is_chosen_when_all_are_closed(void **state)
{
	struct claim_lane lanes[2] = {{.weight = 1}, {.weight = 1}};

	(void)state;
	assert_int_equal(turn(lanes, 2), 2);
	assert_int_equal(turn(lanes, 0), 0);
	lanes[1].open = true;
	assert_int_equal(turn(lanes, 2), 1);
}

static void queues_share_by_weight(void **state)
{
	struct claim_lane lanes[2] = {{.open = true, .weight = 300, .due_at = T0}, {.open = true, .weight = 100, .due_at = T0}};

	(void)state;
	for (int i = 0; i < 400; i++)
		lanes[turn(lanes, 2)].active++;
	assert_in_range(lanes[0].active, 299, 301);
	assert_in_range(lanes[1].active, 99, 101);
}

static void owners_share_a_queue_evenly(void **state)
{
	struct claim_lane lanes[3] = {
		{.open = true, .weight = 100, .priority = 10, .due_at = T0 - USEC_DAY},
		{.open = true, .weight = 100, .due_at = T0},
		{.open = true, .weight = 100, .due_at = T0},
	};

	(void)state;
	lanes[0].owner_active = 5; /* whoever has many running waits, whatever his priority */
	for (int i = 0; i < 10; i++) {
		size_t k = turn(lanes, 3);

		lanes[k].owner_active++;
		for (int q = 0; q < 3; q++)
			lanes[q].active++;
	}
	for (int q = 0; q < 3; q++)
		assert_int_equal(lanes[q].owner_active, 5);
}

static void a_minute_of_waiting_makes_up_for_a_point_of_priority(void **state)
{
	struct claim_lane lanes[2] = {
		{.open = true, .weight = 100, .priority = 3, .due_at = T0},
		{.open = true, .weight = 100, .priority = 0, .due_at = T0 - 3 * CLAIM_AGE + 1},
	};

	(void)state;
	assert_int_equal(turn(lanes, 2), 0);
	lanes[1].due_at -= 2;
	assert_int_equal(turn(lanes, 2), 1);
}

static void a_low_priority_is_not_starved_by_a_steady_stream(void **state)
{
	usec_t low_due = T0, now = T0;

	(void)state;
	for (;; now += USEC_SEC) {
		const struct claim_lane lanes[2] = {
			{.open = true, .weight = 100, .priority = 10, .due_at = now},
			{.open = true, .weight = 100, .priority = -10, .due_at = low_due},
		};

		if (turn(lanes, 2) == 1)
			break;
		assert_true(now - low_due <= 20 * CLAIM_AGE);
	}
	assert_in_range(now - low_due, 20 * CLAIM_AGE - USEC_SEC, 20 * CLAIM_AGE + USEC_SEC);
}

/* ---- conditions ---- */

static void conditions_hold_when_every_figure_is_known_and_below(void **state)
{
	static char load[] = "load<2", io[] = "io<30.5";
	char *words[] = {load, io};
	struct strv when = {words, 2};
	struct machine_figures m = {{[MACHINE_LOAD] = 1999, [MACHINE_CPU] = -1, [MACHINE_MEMORY] = -1, [MACHINE_IO] = 30499}};

	(void)state;
	assert_true(machine_conditions_hold(&m, &when));
	m.thousandths[MACHINE_IO] = 30500;
	assert_false(machine_conditions_hold(&m, &when));
	m.thousandths[MACHINE_IO] = -1;
	assert_false(machine_conditions_hold(&m, &when));
	when.n = 1;
	assert_true(machine_conditions_hold(&m, &when));
	m.thousandths[MACHINE_LOAD] = 2000;
	assert_false(machine_conditions_hold(&m, &when));
	when.n = 0;
	assert_true(machine_conditions_hold(&MACHINE_UNKNOWN, &when));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_run_with_a_free_place_starts_and_takes_it),
		TEST(a_retry_keeps_its_place),
		TEST(each_overlap_word_means_something_else),
		TEST(a_pause_skips_slots_that_others_follow_and_holds_the_rest),
		TEST(a_pause_is_decided_by_the_slot),
		TEST(slots_to_be_caught_up_wait_for_each_other),
		TEST(too_late_is_expired_and_says_by_what),
		TEST(an_expired_run_tells_what_kept_it),
		TEST(an_unmet_condition_is_looked_at_again_but_not_beyond_the_deadline),
		TEST(a_rate_says_when),
		TEST(all_combinations_are_decided_as_written_down_twice),
		TEST(no_lane_is_chosen_when_all_are_closed),
		TEST(queues_share_by_weight),
		TEST(owners_share_a_queue_evenly),
		TEST(a_minute_of_waiting_makes_up_for_a_point_of_priority),
		TEST(a_low_priority_is_not_starved_by_a_steady_stream),
		TEST(conditions_hold_when_every_figure_is_known_and_below),
	};

	return RUN_TESTS(tests);
}
