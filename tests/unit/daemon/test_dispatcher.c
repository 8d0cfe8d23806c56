/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher with a real store, whose operations the test applies by hand, and a spawner that the test simulates. */
#include "base/log.h"
#include "base/text.h"
#include "daemon/artifact/artifact_requests.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/schedule/dispatcher.h"
#include "exec/proto/spawn_client.h"
#include "exec/proto/spawner_launch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "unit/daemon/hand_store.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARTIFACT "{\"command\":[\"true\"],\"artifact\":\"https://example.org/a.tar\"," \
	"\"sha256\":\"0123456701234567012345670123456701234567012345670123456701234567\"}"
#define RETRIES "{\"command\":[\"true\"],\"retries\":3,\"overlap\":\"allow\"}"

/* The requests of the dispatcher to the spawner and to jobsched-net, in order. */
enum asked { START, CANCEL, ACK, LIST, FETCH, RELEASE };
struct request {
	enum asked what;
	int64_t run, fence;
};

struct spawn_client {
	char id[16];
	spawn_report_fn *fn;
	void *arg;
};

struct world {
	struct store_thread hand;
	struct run_watch_set *run_watch_set;
	struct spawner_link *spawner;
	struct dispatcher *d;
	const char *spawner_id;       /* of the next connection */
	struct spawn_client *client;  /* NULL: not connected */
	struct request requests[64];
	size_t n;
	bool untrusted;
	bool no_spawner;              /* connections fail */
	bool silent;                  /* the spawner sends no welcome until the test does */
};

/* The stubs have no argument for it. */
static struct world *world;

/* ---- the spawner ---- */

static void ask(enum asked what, int64_t run, int64_t fence)
{
	assert_true(world->n < ELEMENTS(world->requests));
	world->requests[world->n++] = (struct request){what, run, fence};
}

bool spawn_client_open(struct sd_event *ev, const char *path, const char *node, spawn_report_fn *fn, void *arg,
	struct spawn_client **ret, struct err *e)
{
	struct spawn_client *c = xcalloc(1, sizeof(*c));

	(void)ev;
	(void)path;
	(void)node;
	if (world->no_spawner) {
		free(c);
		return err_set(e, ERR_UNREACHABLE, "there is none");
	}
	snprintf(c->id, sizeof(c->id), "%s", world->spawner_id);
	c->fn = fn;
	c->arg = arg;
	*ret = world->client = c;
	return true;
}

bool spawn_client_connect(struct sd_event *ev, const char *path, const char *node, spawn_report_fn *fn, void *arg,
	struct spawn_client **ret, struct err *e)
{
	if (!spawn_client_open(ev, path, node, fn, arg, ret, e))
		return false;
	if (!world->silent)
		fn(&(struct spawn_report){.kind = SPAWN_CONNECTED}, arg);
	return true;
}

void spawn_client_free(struct spawn_client *c)
{
	if (c && world->client == c)
		world->client = NULL;
	free(c);
}

struct sandbox_offers *spawn_client_sandboxes(const struct spawn_client *c)
{
	(void)c;
	return NULL;
}

const char *spawn_client_spawner(const struct spawn_client *c)
{
	return c->id;
}

enum warrant_policy spawn_client_warrants(const struct spawn_client *c)
{
	(void)c;
	return WARRANT_NONE;
}

unsigned spawn_client_limits_refused(const struct spawn_client *c)
{
	(void)c;
	return 0;
}

bool spawn_client_start(struct spawn_client *c, const struct start_plan *p, struct err *e)
{
	(void)c;
	(void)e;
	ask(START, p->run, p->fence);
	return true;
}

void spawn_client_cancel(struct spawn_client *c, int64_t run, int64_t fence)
{
	(void)c;
	ask(CANCEL, run, fence);
}

void spawn_client_ack(struct spawn_client *c, int64_t run, int64_t fence)
{
	(void)c;
	ask(ACK, run, fence);
}

void spawn_client_list(struct spawn_client *c)
{
	(void)c;
	ask(LIST, 0, 0);
}

void spawn_client_lease(struct spawn_client *c, usec_t end_at, usec_t kill_at)
{
	(void)c;
	(void)end_at;
	(void)kill_at;
}

void spawn_client_health(struct spawn_client *c, struct spawn_health *ret)
{
	(void)c;
	*ret = (struct spawn_health){};
}

void spawn_client_forget_output(struct spawn_client *c, int64_t run, int64_t attempt)
{
	(void)c;
	(void)run;
	(void)attempt;
}

bool spawner_launch(const char *program, const char *runtime_dir, const char *output_dir, struct err *e)
{
	(void)program;
	(void)runtime_dir;
	(void)output_dir;
	return err_set(e, ERR_UNREACHABLE, "there is none");
}

bool spawner_launch_begin(const char *program, const char *runtime_dir, const char *output_dir, pid_t *ret, struct err *e)
{
	(void)ret;
	return spawner_launch(program, runtime_dir, output_dir, e);
}

bool spawner_launch_end(int status, const char *program, const char *runtime_dir, bool *ret_other, struct err *e)
{
	(void)status;
	(void)ret_other;
	return spawner_launch(program, runtime_dir, NULL, e);
}

static size_t asked(const struct world *w, enum asked what, int64_t run, int64_t fence)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		n += w->requests[i].what == what && w->requests[i].run == run && w->requests[i].fence == fence;
	return n;
}

static void report(struct world *w, const struct spawn_report *r)
{
	w->client->fn(r, w->client->arg);
}

static void report_started(struct world *w, int64_t run, int64_t fence)
{
	report(w, &(struct spawn_report){.kind = SPAWN_STARTED, .run = run, .fence = fence, .attempt = fence, .pid = 4711,
		.started_at = clock_now(&clock_system)});
}

static void report_ended(struct world *w, int64_t run, int64_t fence, int64_t exit_code)
{
	report(w, &(struct spawn_report){.kind = SPAWN_ENDED, .run = run, .fence = fence, .attempt = fence, .pid = 4711,
		.outcome = exit_code ? ATTEMPT_FAILED : ATTEMPT_SUCCEEDED, .exit_code = exit_code,
		.started_at = clock_now(&clock_system), .ended_at = clock_now(&clock_system)});
}

/* ---- artifacts: the test says when they are fetched ---- */

bool artifact_requests_get(struct artifact_requests *a, const struct artifact_user *u, struct err *e)
{
	(void)a;
	(void)e;
	ask(FETCH, u->run, u->fence);
	return true;
}

void artifact_requests_release(struct artifact_requests *a, int64_t run, int64_t fence)
{
	(void)a;
	ask(RELEASE, run, fence);
}

/* ---- callbacks of the dispatcher ---- */

static bool trusted(void *arg)
{
	return !((struct world *)arg)->untrusted;
}

static void on_opened(int64_t others, void *arg)
{
	(void)others;
	(void)arg;
}

static void on_exit_asked(int status, void *arg)
{
	(void)status;
	(void)arg;
}

static void on_nothing(void *arg)
{
	(void)arg;
}

static usec_t boot; /* 0: that of the system */

static usec_t test_realtime(void *arg)
{
	(void)arg;
	return clock_now(&clock_system);
}

static usec_t test_boottime(void *arg)
{
	(void)arg;
	return boot ? boot : clock_boot(&clock_system);
}

static const struct clock test_clock = {.realtime = test_realtime, .boottime = test_boottime};

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	struct err e = {};

	world = w;
	w->run_watch_set = run_watch_set_new();
	w->spawner_id = "first";
	if (!hand_open(&w->hand))
		return -1;
	if (!spawner_link_new(w->hand.ev, &(struct spawner_link_options){.node_id = "one-id", .socket = "none", .on_change = on_nothing,
		.on_exit = on_exit_asked, .arg = w}, &w->spawner, &e)) {
		print_error("%s\n", e.msg);
		return -1;
	}
	if (!dispatcher_new(w->hand.ev, &(struct dispatcher_options){.clock = &test_clock, .store = &w->hand, .run_watch_set = w->run_watch_set,
		.artifacts = (struct artifact_requests *)(void *)w, .node_id = "one-id", .node_name = "one", .spawner = w->spawner, .output_dir = w->hand.dir, .trusted = trusted,
		.on_opened = on_opened, .on_fenced = on_nothing, .on_ready = on_nothing,
		.on_change = on_nothing, .on_exit = on_exit_asked, .arg = w}, &w->d, &e)) {
		print_error("%s\n", e.msg);
		return -1;
	}
	dispatcher_set_max_running(w->d, 8);
	dispatcher_set_output_max(w->d, 1 << 20);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	dispatcher_free(w->d);
	spawner_link_free(w->spawner);
	run_watch_set_free(w->run_watch_set);
	hand_close(&w->hand);
	free(w);
	return 0;
}

/* ---- steps ---- */

static void begin(struct world *w)
{
	struct err e = {};

	if (!dispatcher_start(w->d, &e))
		fail_msg("%s", e.msg);
}

static void begin_ready(struct world *w)
{
	begin(w);
	hand_serve(&w->hand);
	report(w, &(struct spawn_report){.kind = SPAWN_LIST_DONE});
}

static void add_job(struct world *w, const char *spec, enum overlap_word overlap)
{
	AUTO(op) *op = op_new(OP_JOB_ADD, NULL, NULL);
	usec_t now = clock_now(&clock_system);

	job_add_op(op)->job = (struct job_new){.uid = 1000, .owner = "ann", .spec = spec, .now = now, .run_at = now,
		.policy = {.overlap = overlap, .permits = 1}};
	hand_apply(&w->hand, op);
	assert_true(op->ok);
}

static void pump(struct world *w)
{
	dispatcher_set_next_due(w->d, w->hand.next_due);
	dispatcher_pump(w->d);
}

static void claim(struct world *w)
{
	pump(w);
	hand_answer(&w->hand, hand_take(&w->hand, OP_CLAIM));
}

static void open_node(struct world *w, const char *id, const char *name, const char *spawner)
{
	AUTO(op) *op = op_new(OP_NODE_OPEN, NULL, NULL);

	op_fill(node_open_op(op), .node = id, .name = name, .spawner = spawner, .now = 1);
	hand_apply(&w->hand, op);
	assert_true(op->ok);
}

static void claim_for(struct world *w, const char *node)
{
	AUTO(op) *op = op_new(OP_CLAIM, NULL, NULL);

	op_fill(claim_op(op), .node = node, .now = clock_now(&clock_system), .room = 1);
	hand_apply(&w->hand, op);
	assert_int_equal(claim_op(op)->claimed.n, 1);
}

/* Another node has taken over run 1 of this node and recorded it as lost. The run is queued again. */
static void lose_run(struct world *w)
{
	AUTO(op) *op = op_new(OP_ENDED, NULL, NULL);

	open_node(w, "newer-id", "one", "other");
	op_fill(run_ended_op(op), .node = "newer-id", .state = RUN_QUEUED, .lost = true, .due_at = clock_now(&clock_system));
	run_ended_op(op)->attempt = (struct attempt){.run = 1, .number = 1, .fence = 1, .outcome = ATTEMPT_LOST, .exit_code = -1,
		.ended_at = clock_now(&clock_system)};
	hand_apply(&w->hand, op);
	assert_true(op->ok && !run_ended_op(op)->stale);
}

/* ---- ends ---- */

static void an_end_that_the_store_refused_is_not_acknowledged(void **state)
{
	static const enum err_kind kinds[] = {ERR_BUSY, ERR_FULL, ERR_INTERNAL, ERR_UNCERTAIN, ERR_REFUSED, ERR_UNREACHABLE,
		ERR_TOO_LARGE};
	struct world *w = *state;

	begin_ready(w);
	for (size_t i = 0; i < ELEMENTS(kinds); i++)
		add_job(w, RETRIES, OVERLAP_ALLOW);
	claim(w);
	for (size_t i = 0; i < ELEMENTS(kinds); i++) {
		int64_t run = (int64_t)i + 1;

		assert_int_equal(asked(w, START, run, 1), 1);
		report_started(w, run, 1);
		report_ended(w, run, 1, 0);
		w->hand.fails = kinds[i];
		hand_answer(&w->hand, hand_take(&w->hand, OP_ENDED));
		w->hand.fails = ERR_NONE;
		assert_int_equal(asked(w, ACK, run, 1), 0);
	}
}

static int said;
static char over[200];

static void count_line(enum log_level level, const struct log_about *about, const char *line)
{
	(void)level;
	(void)about;
	said += strstr(line, "could not record the end") != NULL;
	if (strstr(line, "has recorded the delayed"))
		snprintf(over, sizeof(over), "%s", line);
}

/* One line for each refused end would be hundreds of lines a second on a busy node. */
static void refused_ends_are_logged_once(void **state)
{
	struct world *w = *state;

	begin_ready(w);
	for (int i = 0; i < 4; i++)
		add_job(w, RETRIES, OVERLAP_ALLOW);
	claim(w);
	said = 0;
	log_open("test", LOG_LEVEL_INFO, count_line);
	for (int64_t run = 1; run <= 3; run++) {
		report_started(w, run, 1);
		report_ended(w, run, 1, 0);
		w->hand.fails = run == 2 ? ERR_NONE : ERR_BUSY;
		for (int tries = 0; tries < (run == 2 ? 1 : 3); tries++)
			hand_answer(&w->hand, tries ? hand_await(&w->hand, OP_ENDED) : hand_take(&w->hand, OP_ENDED));
		assert_int_equal(said, 1);
	}
	w->hand.fails = ERR_NONE;
	hand_answer(&w->hand, hand_await(&w->hand, OP_ENDED));
	assert_string_equal(over, ""); /* one of them is not recorded yet */
	hand_answer(&w->hand, hand_await(&w->hand, OP_ENDED));
	assert_non_null(strstr(over, "the delayed ends of 2 runs"));
	report_started(w, 4, 1);
	report_ended(w, 4, 1, 0);
	w->hand.fails = ERR_BUSY;
	hand_answer(&w->hand, hand_take(&w->hand, OP_ENDED));
	assert_int_equal(said, 2); /* logged again after all ends were recorded */
	w->hand.fails = ERR_NONE;
	log_open("test", LOG_LEVEL_INFO, NULL);
}

static void the_end_of_a_deleted_run_is_acknowledged(void **state)
{
	struct world *w = *state;

	begin_ready(w);
	report_ended(w, 77, 1, 0);
	hand_answer(&w->hand, hand_take(&w->hand, OP_ENDED));
	assert_int_equal(asked(w, ACK, 77, 1), 1);
}

/* The spawner has both attempts: the one that was given up with this node, and the one claimed since then. */
static void the_end_of_an_older_attempt_does_not_end_the_newer_one(void **state)
{
	struct world *w = *state;
	struct op *end;

	begin_ready(w);
	add_job(w, RETRIES, OVERLAP_ALLOW);
	claim(w);
	report_started(w, 1, 1);
	lose_run(w);
	dispatcher_rejoin(w->d);
	hand_serve(&w->hand);
	report(w, &(struct spawn_report){.kind = SPAWN_HAS, .run = 1, .fence = 1, .attempt = 1, .pid = 4711});
	report(w, &(struct spawn_report){.kind = SPAWN_LIST_DONE});
	claim(w);
	assert_int_equal(asked(w, START, 1, 2), 1);
	report_started(w, 1, 2);
	report_ended(w, 1, 1, 0);
	end = hand_take(&w->hand, OP_ENDED);
	assert_int_equal(run_ended_op(end)->attempt.fence, 1);
	w->hand.fails = ERR_BUSY;
	hand_answer(&w->hand, end);
	w->hand.fails = ERR_NONE;
	assert_int_equal(asked(w, ACK, 1, 1), 0);
	end = hand_await(&w->hand, OP_ENDED); /* it is submitted again */
	assert_int_equal(run_ended_op(end)->attempt.fence, 1);
	hand_answer(&w->hand, end);
	assert_int_equal(asked(w, ACK, 1, 1), 1);
	report_ended(w, 1, 2, 1);
	end = hand_take(&w->hand, OP_ENDED);
	assert_int_equal(run_ended_op(end)->attempt.fence, 2);
	assert_int_equal(run_ended_op(end)->state, RUN_QUEUED); /* it has retries left */
	hand_answer(&w->hand, end);
	assert_int_equal(asked(w, ACK, 1, 2), 1);
}

/* ---- starts ---- */

static void a_start_that_was_not_recorded_is_recorded_later(void **state)
{
	struct world *w = *state;

	begin_ready(w);
	add_job(w, RETRIES, OVERLAP_ALLOW);
	claim(w);
	report_started(w, 1, 1);
	w->hand.fails = ERR_BUSY;
	hand_answer(&w->hand, hand_await(&w->hand, OP_STARTED));
	w->hand.fails = ERR_NONE;
	hand_answer(&w->hand, hand_await(&w->hand, OP_STARTED));
}

static void a_run_that_has_just_started_is_not_recorded_with_an_older_one(void **state)
{
	struct world *w = *state;
	struct op *op;

	begin_ready(w);
	add_job(w, RETRIES, OVERLAP_ALLOW);
	add_job(w, RETRIES, OVERLAP_ALLOW);
	claim(w);
	boot = clock_boot(&clock_system);
	report_started(w, 1, 1);
	boot += 20 * USEC_MSEC;
	report_started(w, 2, 1);
	op = hand_await(&w->hand, OP_STARTED);
	assert_int_equal(run_started_op(op)->run, 1);
	hand_answer(&w->hand, op);
	assert_null(hand_take(&w->hand, OP_STARTED));
	boot += 20 * USEC_MSEC;
	op = hand_await(&w->hand, OP_STARTED);
	assert_int_equal(run_started_op(op)->run, 2);
	hand_answer(&w->hand, op);
	boot = 0;
}

static void a_run_that_waited_for_its_artifact_does_not_start_without_a_lease(void **state)
{
	struct world *w = *state;

	begin_ready(w);
	add_job(w, ARTIFACT, OVERLAP_ALLOW);
	claim(w);
	assert_int_equal(asked(w, FETCH, 1, 1), 1);
	w->untrusted = true;
	dispatcher_artifact_done(w->d, 1, 1, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), NULL);
	assert_int_equal(asked(w, START, 1, 1), 0);
	assert_int_equal(asked(w, RELEASE, 1, 1), 1);
	hand_answer(&w->hand, hand_take(&w->hand, OP_GIVE_BACK));
	w->untrusted = false;
	claim(w);
	dispatcher_artifact_done(w->d, 1, 2, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), NULL);
	assert_int_equal(asked(w, START, 1, 2), 1);
	assert_int_equal(asked(w, RELEASE, 1, 2), 0);
	report_started(w, 1, 2);
	report_ended(w, 1, 2, 0);
	hand_answer(&w->hand, hand_take(&w->hand, OP_ENDED));
	assert_int_equal(asked(w, RELEASE, 1, 2), 1);
}

/* The start may wait in the spawner for the user database, and would then run under the next lease. */
static void a_start_of_a_node_that_was_given_up_is_cancelled(void **state)
{
	struct world *w = *state;

	begin_ready(w);
	add_job(w, RETRIES, OVERLAP_ALLOW);
	claim(w);
	lose_run(w);
	dispatcher_rejoin(w->d);
	assert_int_equal(asked(w, CANCEL, 1, 1), 1);
}

/* The connection breaks before this node learns that it was given up. Registering again does not return its runs. */
static void registering_again_does_not_return_runs_that_were_given_up(void **state)
{
	struct world *w = *state;

	begin_ready(w);
	add_job(w, "{\"command\":[\"true\"]}", OVERLAP_SKIP);
	claim(w);
	report_started(w, 1, 1);
	lose_run(w);
	report(w, &(struct spawn_report){.kind = SPAWN_GONE});
	hand_serve(&w->hand);
	report(w, &(struct spawn_report){.kind = SPAWN_HAS, .run = 1, .fence = 1, .attempt = 1, .pid = 4711});
	report(w, &(struct spawn_report){.kind = SPAWN_LIST_DONE});
	assert_int_equal(asked(w, CANCEL, 1, 1), 1);
	claim(w);
	assert_int_equal(asked(w, START, 1, 2), 1);
}

/* ---- taking over ---- */

/* The store lists transferred runs only once. */
static void runs_taken_over_are_kept_when_the_spawner_ends_meanwhile(void **state)
{
	struct world *w = *state;
	struct op *end;

	open_node(w, "old-id", "one", "first");
	add_job(w, RETRIES, OVERLAP_SKIP);
	claim_for(w, "old-id");
	begin(w);
	w->no_spawner = true;
	report(w, &(struct spawn_report){.kind = SPAWN_GONE});
	hand_answer(&w->hand, hand_take(&w->hand, OP_NODE_OPEN));
	w->no_spawner = false;
	w->spawner_id = "second";
	hand_answer(&w->hand, hand_await(&w->hand, OP_NODE_OPEN));
	hand_serve(&w->hand);
	report(w, &(struct spawn_report){.kind = SPAWN_LIST_DONE});
	end = hand_take(&w->hand, OP_ENDED);
	assert_non_null(end);
	assert_int_equal(run_ended_op(end)->attempt.run, 1);
	assert_int_equal(run_ended_op(end)->attempt.outcome, ATTEMPT_LOST);
	hand_answer(&w->hand, end);
}

static void runs_taken_over_are_lost_when_another_spawner_has_followed(void **state)
{
	struct world *w = *state;
	struct op *end;

	open_node(w, "old-id", "one", "first");
	add_job(w, RETRIES, OVERLAP_SKIP);
	claim_for(w, "old-id");
	begin(w);
	w->spawner_id = "second";
	report(w, &(struct spawn_report){.kind = SPAWN_GONE});
	hand_serve(&w->hand); /* both registrations: the first one asked for the runs of the first spawner */
	report(w, &(struct spawn_report){.kind = SPAWN_LIST_DONE});
	assert_null(hand_take(&w->hand, OP_GIVE_BACK));
	end = hand_take(&w->hand, OP_ENDED);
	assert_non_null(end);
	assert_int_equal(run_ended_op(end)->attempt.outcome, ATTEMPT_LOST);
	hand_answer(&w->hand, end);
}

/* The next spawner accepts the connection and sends its welcome later. */
static void a_spawner_gets_no_requests_before_its_welcome(void **state)
{
	struct world *w = *state;
	struct spawner_link_health s;

	add_job(w, RETRIES, OVERLAP_SKIP);
	begin_ready(w);
	claim(w);
	assert_int_equal(asked(w, START, 1, 1), 1);
	report_started(w, 1, 1);
	w->silent = true;
	w->n = 0;
	report(w, &(struct spawn_report){.kind = SPAWN_GONE});
	dispatcher_cancel(w->d, 1, 1);
	dispatcher_rejoin(w->d); /* makes no second connection */
	hand_serve(&w->hand);
	assert_int_equal(w->n, 0);
	spawner_link_health(w->spawner, &s);
	assert_non_null(strstr(s.why, "has not answered yet"));
	report(w, &(struct spawn_report){.kind = SPAWN_CONNECTED});
	hand_serve(&w->hand);
	assert_int_equal(asked(w, LIST, 0, 0), 1);
}

#define DISPATCHER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		DISPATCHER_TEST(an_end_that_the_store_refused_is_not_acknowledged),
		DISPATCHER_TEST(refused_ends_are_logged_once),
		DISPATCHER_TEST(the_end_of_a_deleted_run_is_acknowledged),
		DISPATCHER_TEST(the_end_of_an_older_attempt_does_not_end_the_newer_one),
		DISPATCHER_TEST(a_start_that_was_not_recorded_is_recorded_later),
		DISPATCHER_TEST(a_run_that_has_just_started_is_not_recorded_with_an_older_one),
		DISPATCHER_TEST(a_run_that_waited_for_its_artifact_does_not_start_without_a_lease),
		DISPATCHER_TEST(a_start_of_a_node_that_was_given_up_is_cancelled),
		DISPATCHER_TEST(registering_again_does_not_return_runs_that_were_given_up),
		DISPATCHER_TEST(runs_taken_over_are_kept_when_the_spawner_ends_meanwhile),
		DISPATCHER_TEST(runs_taken_over_are_lost_when_another_spawner_has_followed),
		DISPATCHER_TEST(a_spawner_gets_no_requests_before_its_welcome),
	};

	return RUN_TESTS(tests);
}
