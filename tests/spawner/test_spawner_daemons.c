/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of daemons to a spawner: reconnects, repeated starts, leases, flow control. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "spawner_rig.h"
#include <poll.h>

static struct rig g;

static int up(void **state)
{
	(void)state;
	rig_up(&g);
	return 0;
}

static int down(void **state)
{
	(void)state;
	rig_down(&g);
	return 0;
}

static void a_job_survives_a_daemon_restart_and_its_end_is_kept(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "printf x >>$RIG/survivor; while [ ! -e $RIG/go1 ]; do sleep 0.01; done; exit 9");
	const struct rig_report *r;
	int64_t pid;

	(void)state;
	rig_start(&g, &p);
	pid = rig_wait(&g, SPAWN_STARTED, p.run)->r.pid;
	rig_disconnect(&g);
	rig_connect(&g);
	spawn_client_list(g.client);
	r = rig_wait(&g, SPAWN_HAS, p.run);
	assert_int_equal(r->r.pid, pid);
	assert_int_equal(r->r.attempt, 1);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	rig_disconnect(&g);
	rig_touch(&g, "go1");
	assert_true(rig_wait_gone((pid_t)pid));
	rig_connect(&g);
	rig_spin(&g, 100 * USEC_MSEC);
	assert_int_equal(g.n - rig_count(&g, SPAWN_REPORT_MAX, 0), 0); /* no report before a list */
	spawn_client_list(g.client);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.exit_code, 9);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	assert_int_equal(rig_count(&g, SPAWN_HAS, 0), 0);
	rig_disconnect(&g); /* not acknowledged: it is reported again */
	rig_connect(&g);
	spawn_client_list(g.client);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.exit_code, 9);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	spawn_client_ack(g.client, p.run, p.fence);
	rig_disconnect(&g);
	rig_connect(&g);
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	assert_int_equal(rig_count(&g, SPAWN_ENDED, 0), 0);
	assert_int_equal(rig_file_size(&g, "survivor"), 1);
}

/*
 * A start that has a process when its daemon disconnects is completed and reported to the next daemon. A start that is not
 * in the list was dropped, so the daemon starts it again.
 */
static void a_start_runs_once_if_the_daemon_disconnects_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		AUTO_TEXT name = xprintf("left%d", i);
		AUTO_TEXT script = xprintf("printf x >>$RIG/%s", name);
		AUTO_DONE(start_plan) p = rig_plan(&g, script);

		rig_start(&g, &p);
		rig_disconnect(&g);
		rig_connect(&g);
		spawn_client_list(g.client);
		rig_wait(&g, SPAWN_LIST_DONE, 0);
		if (!rig_count(&g, SPAWN_HAS, p.run) && !rig_count(&g, SPAWN_ENDED, p.run)) {
			p.fence++;
			rig_start(&g, &p);
		}
		rig_wait(&g, SPAWN_ENDED, p.run);
		assert_int_equal(rig_file_size(&g, name), 1);
		spawn_client_ack(g.client, p.run, p.fence);
	}
	g.n = g.seen = 0; /* later cases count reports */
}

static void a_repeated_start_runs_once(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "printf x >>$RIG/once; while [ ! -e $RIG/go2 ]; do sleep 0.01; done");
	int64_t pid;

	(void)state;
	rig_start(&g, &p);
	pid = rig_wait(&g, SPAWN_STARTED, p.run)->r.pid;
	rig_start(&g, &p);
	assert_int_equal(rig_wait(&g, SPAWN_STARTED, p.run)->r.pid, pid);
	rig_disconnect(&g);
	rig_connect(&g);
	rig_start(&g, &p); /* also from another daemon */
	assert_int_equal(rig_wait(&g, SPAWN_STARTED, p.run)->r.pid, pid);
	rig_touch(&g, "go2");
	rig_wait(&g, SPAWN_ENDED, p.run);
	rig_start(&g, &p);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.pid, pid);
	assert_int_equal(rig_file_size(&g, "once"), 1);
	spawn_client_ack(g.client, p.run, p.fence);
	p.fence++; /* a new claim is a new start */
	rig_run(&g, &p);
	assert_int_equal(rig_file_size(&g, "once"), 2);
}

/* START_LEASE is a reason of its own, so that the daemon returns the run to the queue at once and without backoff. */
static void a_start_after_the_lease_has_expired_is_refused_with_its_own_reason(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "printf x >>$RIG/leased");
	usec_t now = clock_boot(&clock_system);
	const struct rig_report *r;

	(void)state;
	spawn_client_lease(g.client, now, now + USEC_SEC);
	rig_start(&g, &p);
	r = rig_wait(&g, SPAWN_NOT_STARTED, p.run);
	assert_int_equal(r->r.reason, START_LEASE);
	assert_false(r->r.transient);
	assert_string_equal(r->error, "the lease of this node has expired");
	spawn_client_ack(g.client, p.run, p.fence);
	spawn_client_lease(g.client, now + USEC_HOUR, now + USEC_HOUR);
	p.fence++;
	rig_run(&g, &p);
	spawn_client_lease(g.client, 0, 0);
	assert_int_equal(rig_file_size(&g, "leased"), 1);
}

static void two_claims_of_one_run_are_distinguished_by_their_fence(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "sleep 300");

	(void)state;
	rig_start(&g, &p);
	rig_wait(&g, SPAWN_STARTED, p.run);
	p.fence = 2;
	p.attempt = 2;
	rig_start(&g, &p);
	rig_wait(&g, SPAWN_STARTED, p.run);
	spawn_client_cancel(g.client, p.run, 1);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.fence, 1);
	spawn_client_ack(g.client, p.run, 1);
	spawn_client_list(g.client);
	assert_int_equal(rig_wait(&g, SPAWN_HAS, p.run)->r.fence, 2);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	spawn_client_cancel(g.client, p.run, 2);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.fence, 2);
	spawn_client_ack(g.client, p.run, 2);
}

static void a_newer_daemon_displaces_the_older(void **state)
{
	struct rig other = g;

	(void)state;
	other.client = NULL;
	other.reports = NULL;
	other.n = 0;
	rig_connect(&other);
	rig_wait(&g, SPAWN_SUPERSEDED, 0);
	rig_wait(&g, SPAWN_GONE, 0);
	rig_spin(&g, 50 * USEC_MSEC);
	assert_int_equal(rig_count(&g, SPAWN_GONE, 0), 0); /* once */
	spawn_client_list(g.client); /* ignored: the connection is closed */
	spawn_client_list(other.client);
	rig_wait(&other, SPAWN_LIST_DONE, 0);
	rig_disconnect(&other);
	rig_disconnect(&g);
	free(other.reports);
	rig_connect(&g);
}

static void six_hundred_starts_at_once_all_run(void **state)
{
	(void)state;
	for (int i = 0; i < 600; i++) { /* more than the socket buffer holds: some wait in the client */
		AUTO_DONE(start_plan) p = rig_plan(&g, "exit 0");

		rig_start(&g, &p);
	}
	for (int i = 0; i < 600; i++) {
		const struct rig_report *r = rig_wait(&g, SPAWN_ENDED, 0);

		assert_int_equal(r->r.outcome, ATTEMPT_SUCCEEDED);
		spawn_client_ack(g.client, r->r.run, 1);
	}
	assert_int_equal(rig_count(&g, SPAWN_NOT_STARTED, 0), 0);
}

static void a_daemon_that_does_not_read_does_not_block_workers(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "head -c 1000000 /dev/zero; printf x >>$RIG/unread");

	(void)state;
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0); /* all earlier reports are read */
	for (int i = 0; i < 400; i++) { /* the loop does not run, so no report is read */
		rig_start(&g, &p);
		p.run = g.next_run++;
	}
	for (int i = 0; i < 6000 && rig_file_size(&g, "unread") < 50; i++)
		poll(NULL, 0, 10);
	assert_true(rig_file_size(&g, "unread") >= 50);
	for (int i = 0; i < 400; i++)
		spawn_client_ack(g.client, rig_wait(&g, SPAWN_ENDED, 0)->r.run, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_survives_a_daemon_restart_and_its_end_is_kept),
		TEST(a_start_runs_once_if_the_daemon_disconnects_at_once),
		TEST(a_repeated_start_runs_once),
		TEST(a_start_after_the_lease_has_expired_is_refused_with_its_own_reason),
		TEST(two_claims_of_one_run_are_distinguished_by_their_fence),
		TEST(a_newer_daemon_displaces_the_older),
		TEST(six_hundred_starts_at_once_all_run),
		TEST(a_daemon_that_does_not_read_does_not_block_workers),
	};

	return cmocka_run_group_tests(tests, up, down);
}
