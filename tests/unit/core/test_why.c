/* SPDX-License-Identifier: Apache-2.0 */
/* Every reason there is, from facts alone. */
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/pause.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "core/decide/why.h"
#include "unit/unit.h"
#include <string.h>

#define NOW INT64_C(1800000000000000)

static struct run waiting = {.id = 17, .job = 3, .state = RUN_QUEUED, .slot = NOW - USEC_MIN, .due_at = NOW - USEC_MIN,
	.slot_count = 1};

/* A job whose run is due and has nothing in its way. */
static struct why_facts due(void)
{
	return (struct why_facts){.now = NOW, .ref = "backup", .state = JOB_ACTIVE, .run = &waiting,
		.queue = {.name = "mail"}, .owner = {.name = "ann"}, .node = {.room = 3}};
}

static void expect(const struct why_facts *f, enum why_code code, const char *message, const char *command)
{
	struct why_reason r;

	why_now(f, &r);
	assert_string_equal(why_code_name(r.code), why_code_name(code));
	if (!strstr(r.message, message))
		fail_msg("'%s' is not in '%s'", message, r.message);
	assert_string_equal(r.command, command);
}

static void every_code_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < WHY_CODE_MAX; i++) {
		assert_non_null(why_code_name((enum why_code)i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(why_code_name((enum why_code)i), why_code_name((enum why_code)k));
	}
}

static void a_due_run_with_nothing_in_its_way_starts(void **state)
{
	struct why_facts f = due();

	(void)state;
	expect(&f, WHY_STARTING, "when its turn comes", "jobctl queue list");
	f.last_start = NOW + USEC_MIN;
	expect(&f, WHY_STARTING, "it will not start after 2027-01-15T08:01:00Z", "jobctl queue list");
}

static void pauses_and_freezes_name_who_and_until_when(void **state)
{
	char none[] = "", ann[] = "ann", tidy[] = "tidy up";
	struct pause_order p = {.scope = PAUSE_JOB, .key = none, .by_name = ann, .by_uid = 7, .reason = tidy, .at = NOW - 1,
		.until = NOW + USEC_HOUR, .spared = none};
	struct why_facts f = due();

	(void)state;
	f.pause = &p;
	expect(&f, WHY_PAUSED, "ann", "jobctl resume backup");
	expect(&f, WHY_PAUSED, "tidy up", "jobctl resume backup");
	f.run = NULL;
	f.state = JOB_PAUSED;
	expect(&f, WHY_PAUSED, "2027-01-15T09:00:00Z", "jobctl resume backup");
	p.scope = PAUSE_FREEZE;
	p.uid = -1;
	f.state = JOB_ACTIVE;
	expect(&f, WHY_FROZEN, "ann", "jobctl thaw");
	f.pause = NULL;
	f.state = JOB_PAUSED;
	f.state_reason = "exit code 100";
	expect(&f, WHY_PAUSED, "exit code 100", "jobctl resume backup");
}

static void a_planned_run_says_what_will_keep_it(void **state)
{
	struct pause_order p = {.scope = PAUSE_JOB, .uid = 1000, .by_uid = 1000, .by_name = (char *)"ann"};
	struct run run = waiting;
	struct why_facts f = due();

	(void)state;
	f.run = &run;
	run.due_at = NOW + USEC_MIN;
	f.pause = &p;
	f.owner_number = 1000;
	f.bound = true;
	expect(&f, WHY_PAUSED, "paused by ann", "jobctl resume backup");
	p.until = NOW + USEC_SEC; /* over before the run is due */
	expect(&f, WHY_NOT_DUE, "due at", "");
	p.until = 0;
	p.by_uid = 0;
	expect(&f, WHY_PAUSED, "only an administrator can end that", "");
	p.scope = PAUSE_FREEZE;
	p.uid = -1;
	expect(&f, WHY_FROZEN, "only an administrator can end that", "");
	f.bound = false;
	expect(&f, WHY_FROZEN, "frozen by ann", "jobctl thaw");
	f.pause = NULL;
	strcpy(f.node.spawner, "the spawner is gone");
	expect(&f, WHY_NO_SPAWNER, "the spawner is gone", "systemctl status jobsched-spawner");
	f.run = NULL;
	f.next_slot = NOW + USEC_HOUR;
	expect(&f, WHY_NO_SPAWNER, "the spawner is gone", "systemctl status jobsched-spawner");
}

static void a_held_run_says_by_what(void **state)
{
	struct run run = waiting, holder = {.id = 9, .state = RUN_RUNNING, .started_at = NOW - USEC_HOUR};
	struct why_facts f = due();

	(void)state;
	f.run = &run;
	run.hold = HOLD_PAUSED;
	expect(&f, WHY_PAUSED, "has ended", "jobctl resume backup");
	run.hold = HOLD_FROZEN;
	expect(&f, WHY_FROZEN, "has ended", "jobctl resume backup");
	run.hold = HOLD_PERMIT;
	f.permits = f.taken = 1;
	expect(&f, WHY_OVERLAP, "the previous run", "jobctl runs backup");
	f.holder = &holder;
	expect(&f, WHY_OVERLAP, "run 9, which has been running since 2027-01-15T07:00:00Z", "jobctl cancel backup#9");
	holder = (struct run){.id = 9, .state = RUN_QUEUED, .due_at = NOW + USEC_HOUR};
	expect(&f, WHY_OVERLAP, "another attempt at 2027-01-15T09:00:00Z", "jobctl cancel backup#9");
	f.permits = f.taken = 2;
	expect(&f, WHY_MAX_RUNNING, "2 of 2", "jobctl runs backup --state running");
}

static void a_run_that_is_due_later_says_why(void **state)
{
	struct run run = waiting;
	struct why_facts f = due();
	char condition[] = "condition", rate[] = "rate";

	(void)state;
	f.run = &run;
	run.due_at = NOW + USEC_HOUR;
	expect(&f, WHY_NOT_DUE, "due at 2027-01-15T09:00:00Z", "");
	run.attempt = 2;
	expect(&f, WHY_RETRY, "2 attempts failed; the next one is due at 2027-01-15T09:00:00Z", "jobctl log backup#17");
	run.attempt = 0;
	run.reason = condition;
	f.unmet = "load is 3.1, and must be below 2";
	expect(&f, WHY_CONDITION, "load is 3.1, and must be below 2", "jobctl set backup when=");
	run.reason = rate;
	expect(&f, WHY_RATE, "rate of the job; the next run may start at 2027-01-15T09:00:00Z", "jobctl show backup");
}

static void limits_say_whose_and_how_many(void **state)
{
	struct run holder = {.id = 9, .state = RUN_RUNNING, .started_at = NOW - USEC_HOUR};
	struct why_facts f = due();

	(void)state;
	f.rate_at = NOW + USEC_MIN;
	expect(&f, WHY_RATE, "rate of the job", "jobctl show backup");
	f.unmet = "io is 40, and must be below 30";
	expect(&f, WHY_CONDITION, "io is 40", "jobctl set backup when=");
	f.node.room = 0;
	f.node.active = 12;
	expect(&f, WHY_NO_ROOM, "12 runs are running", "jobctl status");
	f.holder = &holder;
	f.permits = f.taken = 1;
	expect(&f, WHY_OVERLAP, "run 9 of the job has been running since 2027-01-15T07:00:00Z", "jobctl runs backup");
	f.owner.rate_at = NOW + USEC_MIN;
	expect(&f, WHY_RATE, "rate of owner 'ann'; the next run may start at 2027-01-15T08:01:00Z", "jobctl limit list");
	f.owner.running = f.owner.active = 5;
	expect(&f, WHY_OWNER_FULL, "owner 'ann' is full: 5 of 5", "jobctl limit list");
	f.queue.rate_at = NOW + USEC_MIN;
	expect(&f, WHY_RATE, "rate of queue 'mail'", "jobctl queue list");
	f.queue.running = f.queue.active = 8;
	expect(&f, WHY_QUEUE_FULL, "queue 'mail' is full: 8 of 8", "jobctl queue list");
	strcpy(f.node.spawner, "the spawner (pid 17) is stopped");
	expect(&f, WHY_NO_SPAWNER, "the spawner (pid 17) is stopped", "systemctl status jobsched-spawner");
	f.node.spawner_stopped = 17;
	expect(&f, WHY_NO_SPAWNER, "the spawner (pid 17) is stopped", "kill -CONT 17");
	f.bound = true;
	expect(&f, WHY_NO_SPAWNER, "ask an administrator", "");
	f.bound = false;
	f.node.spawner[0] = '\0';
	strcpy(f.node.refused, "no space left for the store");
	expect(&f, WHY_STORE, "nothing can be started: no space left for the store", "jobctl status");
	f.node.refused[0] = '\0';
	strcpy(f.node.spawner, "the spawner is gone");
	f.node.stopping = true;
	expect(&f, WHY_DRAINING, "starts no new runs", "jobctl status");
	f.node.clock = CLOCK_UNSURE;
	f.node.made_since = f.run->created_at + 1;
	f.node.clock_left = 11 * USEC_SEC + 1;
	expect(&f, WHY_CLOCK, "at most 12 s: the clock was not synchronised", "timedatectl");
	f.node.made_since--;
	expect(&f, WHY_DRAINING, "starts no new runs", "jobctl status");
	f.rated = true;
	expect(&f, WHY_CLOCK, "at most 12 s", "timedatectl");
	f.node.clock = CLOCK_WRONG;
	expect(&f, WHY_CLOCK, "before 2025", "timedatectl");
}

static void nodes_that_may_not_run_it_are_told_from_nodes_that_do_not_exist(void **state)
{
	struct why_facts f = due();

	(void)state;
	f.nodes = (struct why_nodes){.alive = 2, .awake = 2, .wanted = "gpu=yes and zone=b", .offered = "zone=a on n1", .leader = "n1"};
	expect(&f, WHY_NO_NODE, "no available node has gpu=yes and zone=b; there are zone=a on n1", "jobctl nodes");
	f.nodes.offered = NULL;
	expect(&f, WHY_NO_NODE, "no node has any label", "jobctl nodes");
	f.nodes.fit = 1;
	f.nodes.drained = "n1";
	expect(&f, WHY_DRAINED, "every node with gpu=yes and zone=b is drained", "jobctl node undrain n1");
	f.bound = true;
	expect(&f, WHY_DRAINED, "is drained", "jobctl nodes");
	f.bound = false;
	f.nodes.wanted = NULL;
	expect(&f, WHY_DRAINED, "every node is drained", "jobctl node undrain n1");
	f.nodes.fit_awake = 1;
	f.node.room = 0;
	expect(&f, WHY_NO_ROOM, "this node is full", "jobctl status");
	f.nodes.elsewhere = true;
	strcpy(f.node.spawner, "the spawner is gone");
	expect(&f, WHY_STARTING, "when its turn comes", "jobctl queue list");
}

static void an_unplanned_slot_is_distinguished_from_a_future_one(void **state)
{
	struct why_facts f = due();

	(void)state;
	f.run = NULL;
	f.next_slot = NOW - USEC_MIN;
	f.nodes = (struct why_nodes){.alive = 1, .awake = 1, .fit = 1, .fit_awake = 1};
	expect(&f, WHY_UNPLANNED, "its slot at 2027-01-15T07:59:00Z has passed without being planned: no node leads", "jobctl nodes");
	f.nodes.leader = "n1";
	expect(&f, WHY_UNPLANNED, "the node that is responsible for it does not", "jobctl nodes");
	f.next_slot = NOW - USEC_SEC;
	expect(&f, WHY_SCHEDULED, "nothing is due", "jobctl next backup");
}

static void a_run_that_goes_on_says_since_when(void **state)
{
	struct run run = {.id = 17, .state = RUN_RUNNING, .started_at = NOW - USEC_MIN};
	struct why_facts f = due();

	(void)state;
	f.run = &run;
	expect(&f, WHY_RUNNING, "since 2027-01-15T07:59:00Z", "jobctl log -f backup#17");
	run.state = RUN_CLAIMED;
	run.started_at = 0;
	expect(&f, WHY_RUNNING, "being started", "jobctl log -f backup#17");
}

static void a_job_without_a_run_says_what_comes_next_or_why_nothing_will(void **state)
{
	char ann[] = "ann";
	struct event ev = {.who = ann, .at = NOW - USEC_HOUR};
	struct why_facts f = due();

	(void)state;
	f.run = NULL;
	expect(&f, WHY_SCHEDULED, "being computed", "jobctl next backup");
	f.manual = true;
	expect(&f, WHY_MANUAL, "when it is triggered", "jobctl run backup");
	f.after = "after job 'a' succeeds";
	expect(&f, WHY_AFTER, "it runs after job 'a' succeeds", "jobctl show --graph backup");
	f.boots = true;
	expect(&f, WHY_BOOT, "boot", "jobctl run backup");
	f.follows = true;
	expect(&f, WHY_FOLLOWS, "end of its run", "jobctl runs backup");
	f.next_slot = NOW + USEC_HOUR;
	expect(&f, WHY_SCHEDULED, "its next slot is 2027-01-15T09:00:00Z", "jobctl next backup");
	f.state = JOB_FINISHED;
	expect(&f, WHY_FINISHED, "no further slots", "jobctl run backup");
	f.state = JOB_SUSPENDED;
	f.state_reason = "no zone 'Mars'";
	expect(&f, WHY_SUSPENDED, "no zone 'Mars'", "jobctl edit backup");
	f.state_reason = "gone";
	expect(&f, WHY_SUSPENDED, "it is suspended: gone (the server answered 410 to its call)", "jobctl resume backup");
	f.state_reason = "no_such_user";
	f.owner.name = "ann";
	expect(&f, WHY_SUSPENDED, "it is suspended: its owner 'ann' no longer exists", "jobctl resume backup");
	f.state_reason = "other_user";
	expect(&f, WHY_SUSPENDED, "no longer belong to the same user", "jobctl resume backup");
	f.state = JOB_CANCELLED;
	expect(&f, WHY_CANCELLED, "it was cancelled", "jobctl resume backup");
	f.ended = &ev;
	expect(&f, WHY_CANCELLED, "by ann at 2027-01-15T07:00:00Z", "jobctl resume backup");
	f.state = JOB_REMOVED;
	expect(&f, WHY_REMOVED, "it was removed by ann", "jobctl events backup");
}

static void only_a_waiting_is_worth_a_word_in_a_list(void **state)
{
	(void)state;
	assert_true(why_is_wait(WHY_PAUSED) && why_is_wait(WHY_QUEUE_FULL) && why_is_wait(WHY_CLOCK) && why_is_wait(WHY_RETRY));
	assert_false(why_is_wait(WHY_SCHEDULED) || why_is_wait(WHY_RUNNING) || why_is_wait(WHY_NOT_DUE) ||
		     why_is_wait(WHY_MANUAL) || why_is_wait(WHY_AFTER) || why_is_wait(WHY_FINISHED) || why_is_wait(WHY_NONE));
}

/* ---- the past ---- */

static void expect_run(struct run r, const char *reason, enum why_code code, const char *message, const char *command)
{
	struct why_reason why;

	r.id = 17;
	r.reason = (char *)reason;
	r.ended_at = NOW;
	why_run(&r, NULL, false, "backup", NOW, &why);
	assert_string_equal(why_code_name(why.code), why_code_name(code));
	if (!strstr(why.message, message))
		fail_msg("'%s' is not in '%s'", message, why.message);
	assert_string_equal(why.command, command);
}

static void a_run_that_ran_says_how_it_ended(void **state)
{
	(void)state;
	expect_run((struct run){.state = RUN_SUCCEEDED}, NULL, WHY_SUCCEEDED, "2027-01-15T08:00:00Z", "jobctl log backup#17");
	expect_run((struct run){.state = RUN_FAILED, .exit_code = 3, .attempt = 2}, NULL, WHY_FAILED,
		"after 2 attempts: exit code 3", "jobctl log backup#17");
	expect_run((struct run){.state = RUN_FAILED, .term_signal = 9, .exit_code = -1}, NULL, WHY_FAILED, "signal 9",
		"jobctl log backup#17");
	expect_run((struct run){.state = RUN_FAILED, .exit_code = 3, .dead_at = NOW}, NULL, WHY_DEAD, "dead letter",
		"jobctl dead show backup#17");
	expect_run((struct run){.state = RUN_TIMED_OUT}, NULL, WHY_TIMED_OUT, "exceeded its time limit", "jobctl log backup#17");
	expect_run((struct run){.state = RUN_LOST}, NULL, WHY_LOST, "disappeared", "jobctl log backup#17");
	expect_run((struct run){.state = RUN_CANCELLED}, "replaced", WHY_REPLACED, "newer run", "jobctl events backup#17");
	expect_run((struct run){.state = RUN_CANCELLED}, "job removed", WHY_CANCELLED, "it was cancelled: job removed",
		"jobctl events backup#17");
	expect_run((struct run){.state = RUN_RUNNING, .started_at = NOW}, NULL, WHY_RUNNING, "has been running since",
		"jobctl log -f backup#17");
}

static void a_program_that_is_missing_is_named(void **state)
{
	struct run r = {.id = 17, .state = RUN_FAILED, .exit_code = -1, .attempt = 1, .reason = (char *)"not_started"};
	struct why_reason why;

	(void)state;
	why_run(&r, "could not run 'bakcup': No such file or directory", false, "backup", NOW, &why);
	assert_string_equal(why.message, "its command could not be started: could not run 'bakcup': No such file or directory");
	r.exit_code = 127;
	r.reason = NULL;
	why_run(&r, NULL, false, "backup", NOW, &why);
	assert_non_null(strstr(why.message, "did not find a program"));
	r.exit_code = 1;
	why_run(&r, "'sudo' is a set-user-ID program", false, "backup", NOW, &why);
	assert_string_equal(why.message, "its command failed: exit code 1; 'sudo' is a set-user-ID program");
}

static void a_call_is_not_called_a_command(void **state)
{
	struct run r = {.id = 17, .state = RUN_FAILED, .exit_code = -1, .attempt = 1, .reason = (char *)"status 404 is final"};
	struct why_reason why;

	(void)state;
	why_run(&r, "the server answered 404", true, "backup", NOW, &why);
	assert_string_equal(why.message, "its call failed: the server answered 404, status 404 is final");
	r.reason = (char *)"the call failed";
	why_run(&r, "Could not resolve host", true, "backup", NOW, &why);
	assert_string_equal(why.message, "its call failed: Could not resolve host");
	r.reason = (char *)"not_started";
	why_run(&r, "the secret 't' could not be read", true, "backup", NOW, &why);
	assert_string_equal(why.message, "its call was not sent: the secret 't' could not be read");
	r = (struct run){.id = 17, .state = RUN_TIMED_OUT, .exit_code = -1, .attempt = 1, .reason = (char *)"timeout"};
	why_run(&r, "the target has not reported the end in time", true, "backup", NOW, &why);
	assert_string_equal(why.message, "it exceeded its time limit and was ended: the target has not reported the end in time");
}

static void a_denied_run_names_who_denied_it(void **state)
{
	struct run denied = {.state = RUN_FAILED, .slot_count = 1, .owner = (char *)"ann"};

	(void)state;
	for (int f = 0; f < START_FAILURE_MAX; f++)
		if (start_failure_denies((enum start_failure)f)) /* each has words of its own */
			expect_run(denied, start_failure_name((enum start_failure)f), WHY_DENIED, "'ann'",
				start_failure_suspends((enum start_failure)f) ? "jobctl resume backup"
				: f == START_NO_WARRANT ? "jobctl approve backup" : "jobctl show backup");
	expect_run(denied, "no_warrant", WHY_DENIED, "it was not started: its command as 'ann' is not approved", "jobctl approve backup");
}

static void a_run_that_did_not_run_has_a_reason(void **state)
{
	struct run skipped = {.state = RUN_SKIPPED, .slot_count = 1};

	(void)state;
	expect_run(skipped, "overlap", WHY_OVERLAP, "still running", "jobctl set backup overlap=queue");
	expect_run(skipped, "limit", WHY_LIMIT, "waiting", "jobctl show backup");
	expect_run(skipped, "paused", WHY_PAUSED, "paused then", "jobctl events backup --what job,pause,resume");
	expect_run(skipped, "frozen", WHY_FROZEN, "frozen then", "jobctl events --what freeze,thaw");
	expect_run(skipped, "condition", WHY_CONDITION, "did not hold", "jobctl show backup");
	expect_run(skipped, "held", WHY_CRON, "another cron daemon", "jobctl cron status");
	expect_run(skipped, "shadow", WHY_CRON, "shadow mode", "jobctl cron status");
	expect_run(skipped, "missed", WHY_MISSED, "the scheduler was down", "jobctl show backup");
	expect_run((struct run){.state = RUN_SKIPPED, .slot = NOW, .slot_last = NOW + USEC_HOUR, .slot_count = 61}, "missed",
		WHY_MISSED, "61 slots from 2027-01-15T08:00:00Z to 2027-01-15T09:00:00Z", "jobctl show backup");
	expect_run((struct run){.state = RUN_EXPIRED}, "deadline (overlap)", WHY_DEADLINE, "too late (overlap): its deadline",
		"jobctl show backup");
	expect_run((struct run){.state = RUN_EXPIRED}, "expires", WHY_EXPIRED, "it had expired", "jobctl show backup");
}

/* ---- moments ---- */

static void expect_at(struct why_moment m, enum why_code code, const char *message, const char *command)
{
	struct why_reason why;

	m.now = NOW;
	m.ref = "backup";
	m.created_at = NOW - USEC_DAY;
	why_at(&m, &why);
	assert_string_equal(why_code_name(why.code), why_code_name(code));
	if (!strstr(why.message, message))
		fail_msg("'%s' is not in '%s'", message, why.message);
	assert_string_equal(why.command, command);
}

static void a_moment_without_a_run_says_what_it_was(void **state)
{
	char ann[] = "ann";
	struct event ev = {.who = ann, .at = NOW - 2 * USEC_HOUR};
	usec_t at = NOW - USEC_HOUR;

	(void)state;
	expect_at((struct why_moment){.at = NOW - 2 * USEC_DAY}, WHY_BEFORE, "did not exist", "jobctl next backup");
	expect_at((struct why_moment){.at = NOW + USEC_DAY, .is_slot = true}, WHY_TO_COME, "in the future", "jobctl next backup");
	expect_at((struct why_moment){.at = at, .is_slot = true}, WHY_NO_RECORD, "no record", "jobctl history backup");
	expect_at((struct why_moment){.at = at, .is_slot = true, .paused = &ev}, WHY_PAUSED,
		"by ann since 2027-01-15T06:00:00Z", "jobctl events backup");
	expect_at((struct why_moment){.at = at, .previous = at - USEC_MIN, .next = at + USEC_MIN}, WHY_NO_SLOT,
		"around it are 2027-01-15T06:59:00Z and 2027-01-15T07:01:00Z", "jobctl next backup");
	expect_at((struct why_moment){.at = at, .next = at + USEC_MIN}, WHY_NO_SLOT, "the slot after it is",
		"jobctl next backup");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(every_code_has_a_name_of_its_own),
		TEST(a_due_run_with_nothing_in_its_way_starts),
		TEST(pauses_and_freezes_name_who_and_until_when),
		TEST(a_held_run_says_by_what),
		TEST(a_planned_run_says_what_will_keep_it),
		TEST(a_program_that_is_missing_is_named),
		TEST(a_run_that_is_due_later_says_why),
		TEST(limits_say_whose_and_how_many),
		TEST(nodes_that_may_not_run_it_are_told_from_nodes_that_do_not_exist),
		TEST(an_unplanned_slot_is_distinguished_from_a_future_one),
		TEST(a_run_that_goes_on_says_since_when),
		TEST(a_job_without_a_run_says_what_comes_next_or_why_nothing_will),
		TEST(only_a_waiting_is_worth_a_word_in_a_list),
		TEST(a_run_that_ran_says_how_it_ended),
		TEST(a_call_is_not_called_a_command),
		TEST(a_denied_run_names_who_denied_it),
		TEST(a_run_that_did_not_run_has_a_reason),
		TEST(a_moment_without_a_run_says_what_it_was),
	};

	return RUN_TESTS(tests);
}
