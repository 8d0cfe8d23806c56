/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, versions, payloads, deadlines, epoll sources: valid and invalid input. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/start/start_plan.h"
#include "base/deadline.h"
#include "exec/proto/frame.h"
#include "exec/proto/epoll_source.h"
#include "exec/proto/payload.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

/* A valid frame of each type. */
static void sample(struct frame *f, unsigned type)
{
	frame_init(f, (enum frame_type)type,
		type == FRAME_OPEN_FILE ? 2 : type >= FRAME_STATE ? 6 : type >= FRAME_RESULT ? 5 : type >= FRAME_START_SMALL ? 4 : type >= FRAME_WATCH_TABLES ? 3 : 1);
	switch (type) {
	case FRAME_HELLO:
		f->hello.oldest = f->hello.newest = 1;
		break;
	case FRAME_WELCOME:
		f->welcome.version = 1;
		break;
	case FRAME_STARTED:
	case FRAME_HAS:
		f->started.pid = 7;
		break;
	case FRAME_START_SMALL:
		f->start_small.payload_len = 1;
		break;
	case FRAME_ENDED:
		f->ended.pid = 7;
		f->ended.outcome = ATTEMPT_FAILED;
		break;
	default:
		break;
	}
	if (f->size > FRAME_HEAD && f->version)
		f->start.run = 1; /* the first member of all other bodies */
}

static size_t descriptors_of(unsigned type)
{
	if (type == FRAME_OPEN_FILE || type == FRAME_STATE)
		return 2;
	return type == FRAME_START || type == FRAME_SANDBOXES || type == FRAME_TABLES || type == FRAME_ASK_WARRANT;
}

static bool right(const struct frame *f, size_t len, size_t fds)
{
	bool engine = f->type < FRAME_WELCOME || f->type == FRAME_OPEN_FILE || f->type == FRAME_WATCH_TABLES ||
		f->type == FRAME_START_SMALL || f->type == FRAME_STATE;
	enum frame_from from = engine ? FRAME_FROM_DAEMON : FRAME_FROM_SPAWNER;

	return frame_check(f, len, fds, from, f->version, NULL);
}

static void every_type_has_a_valid_frame(void **state)
{
	struct frame f;

	(void)state;
	for (unsigned t = FRAME_HELLO; t < FRAME_TYPE_MAX; t++) {
		sample(&f, t);
		assert_true(right(&f, f.size, descriptors_of(t)));
		assert_string_not_equal(frame_type_name(t), "?");
	}
	assert_string_equal(frame_type_name(0), "?");
	assert_string_equal(frame_type_name(FRAME_TYPE_MAX), "?");
}

static void a_frame_of_another_length_is_refused(void **state)
{
	struct frame f;

	(void)state;
	for (unsigned t = FRAME_HELLO; t < FRAME_TYPE_MAX; t++)
		for (size_t len = 0; len <= sizeof(f); len++) {
			sample(&f, t);
			assert_true(right(&f, len, descriptors_of(t)) == (len == f.size));
			if (len != f.size) {
				f.size = (uint32_t)len; /* even if the size member agrees */
				assert_false(right(&f, len, descriptors_of(t)));
			}
		}
}

static void a_frame_from_the_wrong_side_or_of_unknown_type_is_refused(void **state)
{
	struct frame f;

	(void)state;
	for (unsigned t = 0; t < 70000; t += t < 40 ? 1 : 997) {
		bool engine = (t >= FRAME_HELLO && t <= FRAME_ASK_WARRANT) || t == FRAME_OPEN_FILE ||
			      t == FRAME_WATCH_TABLES || t == FRAME_START_SMALL || t == FRAME_STATE;
		bool known = t >= FRAME_HELLO && t < FRAME_TYPE_MAX;

		sample(&f, known ? t : FRAME_LIST);
		f.type = (uint16_t)t;
		if (f.type != t)
			continue;
		assert_true(frame_check(&f, f.size, descriptors_of(t), FRAME_FROM_DAEMON, f.version,
				    NULL) == (known && engine));
		assert_true(frame_check(&f, f.size, descriptors_of(t), FRAME_FROM_SPAWNER,
				    f.version, NULL) == (known && !engine));
	}
}

static void a_frame_in_the_wrong_phase_is_refused(void **state)
{
	struct frame f;

	(void)state;
	sample(&f, FRAME_HELLO);
	assert_false(frame_check(&f, f.size, 0, FRAME_FROM_DAEMON, 1, NULL)); /* a second hello */
	sample(&f, FRAME_LIST);
	assert_false(frame_check(&f, f.size, 0, FRAME_FROM_DAEMON, 0, NULL)); /* before the hello */
	/* not the agreed version */
	assert_false(frame_check(&f, f.size, 0, FRAME_FROM_DAEMON, 2, NULL));
	f.version = 0;
	assert_false(frame_check(&f, f.size, 0, FRAME_FROM_DAEMON, 0, NULL));
}

static void every_number_is_checked_against_its_range(void **state)
{
	(void)state;
	for (unsigned t = FRAME_START; t < FRAME_TYPE_MAX; t++) {
		struct frame f;

		sample(&f, t);
		if (!f.version)
			continue;
		/* no member accepts the lowest number */
		for (size_t at = FRAME_HEAD; at + 8 <= f.size && at < FRAME_HEAD + 14 * 8;
			at += 8) {
			const int64_t lowest = INT64_MIN;

			if (t == FRAME_NOT_STARTED && at >= FRAME_HEAD + 4 * 8)
				break;
			if ((t == FRAME_START || t == FRAME_START_SMALL) &&
				at >= FRAME_HEAD + offsetof(struct frame_start, warrant))
				break;
			sample(&f, t);
			memcpy((char *)&f + at, &lowest, 8);
			assert_false(right(&f, f.size, descriptors_of(t)));
		}
	}
}

static void texts_must_be_terminated_and_padded_with_zeros(void **state)
{
	struct frame f;

	(void)state;
	sample(&f, FRAME_NOT_STARTED);
	memset(f.not_started.error, 'x', FRAME_TEXT_MAX);
	assert_false(right(&f, f.size, 0));
	f.not_started.error[FRAME_TEXT_MAX - 1] = '\0';
	assert_true(right(&f, f.size, 0));
	f.not_started.error[5] = '\0'; /* bytes after the end could leak memory */
	assert_false(right(&f, f.size, 0));
	frame_text(f.not_started.error, FRAME_TEXT_MAX, "short");
	assert_true(right(&f, f.size, 0));
	memset(f.not_started.error, 0, FRAME_TEXT_MAX);
	frame_text(f.not_started.error, 4, "much longer");
	assert_string_equal(f.not_started.error, "muc");
}

static void descriptors_are_accepted_only_with_frames_that_need_them(void **state)
{
	struct frame f;

	(void)state;
	for (unsigned t = FRAME_HELLO; t < FRAME_TYPE_MAX; t++)
		for (size_t n = 0; n <= 2; n++) {
			sample(&f, t);
			assert_true(right(&f, f.size, n) == (n == descriptors_of(t)));
		}
	sample(&f, FRAME_START);
	f.start.has_stdin = 1;
	assert_true(right(&f, f.size, 2));
	assert_false(right(&f, f.size, 1));
}

static void a_payload_in_the_frame_has_a_length_and_no_descriptors(void **state)
{
	struct frame f;

	(void)state;
	sample(&f, FRAME_START_SMALL);
	f.start_small.payload_len = FRAME_PAYLOAD_MAX;
	assert_true(right(&f, f.size, 0));
	f.start_small.payload_len = FRAME_PAYLOAD_MAX + 1;
	assert_false(right(&f, f.size, 0));
	f.start_small.payload_len = 0;
	assert_false(right(&f, f.size, 0));
	sample(&f, FRAME_START_SMALL);
	f.start.has_stdin = 1;
	assert_false(right(&f, f.size, 0));
	assert_false(right(&f, f.size, 1));
	sample(&f, FRAME_START_SMALL);
	f.start.has_artifact = 1;
	assert_false(right(&f, f.size, 1));
	assert_false(frame_check(&f, f.size, 0, FRAME_FROM_DAEMON, 3, NULL)); /* an older version was agreed */
}

static void the_highest_common_version_is_used(void **state)
{
	(void)state;
	assert_int_equal(frame_version_pick(1, 1, 1, 1), 1);
	/* the spawner is one version older than the daemon */
	assert_int_equal(frame_version_pick(1, 2, 2, 3), 2);
	assert_int_equal(frame_version_pick(2, 3, 1, 2), 2); /* the daemon is older */
	assert_int_equal(frame_version_pick(2, 3, 2, 3), 3);
	assert_int_equal(frame_version_pick(1, 1, 2, 3), 0);
	assert_int_equal(frame_version_pick(3, 4, 1, 2), 0);
	assert_int_equal(frame_version_pick(1, 2, 1, UINT32_MAX), 2);
}

static void frames_and_descriptors_pass_through_a_socket(void **state)
{
	int pair[2], fds[FRAME_FDS_MAX], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct frame f, got;
	size_t len, n;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(frame_recv(pair[1], &got, &len, fds, &n), -EAGAIN);
	sample(&f, FRAME_START);
	assert_int_equal(frame_send(pair[0], &f, (int[]){null, null}, 2), 0);
	assert_int_equal(frame_recv(pair[1], &got, &len, fds, &n), 0);
	assert_int_equal(len, f.size);
	assert_memory_equal(&f, &got, len);
	assert_int_equal(n, 2);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	frame_fds_close(fds, n);
	close(pair[0]);
	assert_int_equal(frame_recv(pair[1], &got, &len, fds, &n), 0);
	assert_int_equal(len, 0);
	close(pair[1]);
	close(null);
}

/* ---- payloads ---- */

static struct start_plan sample_plan(void)
{
	struct start_plan p = {};

	exec_spec_init(&p.spec);
	p.spec.uid = 1000;
	p.spec.owner = xstrdup("ann");
	strv_add(&p.spec.argv, "/bin/sh");
	strv_add(&p.vars, "JOBSCHED_JOB=1");
	strv_add(&p.vars, "JOBSCHED_NAME=");
	return p;
}

static void an_encoded_payload_is_decoded_unchanged(void **state)
{
	AUTO_DONE(start_plan) p = sample_plan();
	AUTO_DONE(payload) got = {};
	AUTO_DONE(buf) order = {};
	struct err e = {};
	AUTO_FD fd = payload_memfd(&p, FRAME_VERSION, &e);

	(void)state;
	assert_true(fd >= 0);
	if (!payload_read(&got, fd, &e))
		fail_msg("%s", e.msg);
	assert_true(exec_spec_encode(&p.spec, &order, &e));
	assert_int_equal(got.bytes_len, order.len);
	assert_memory_equal(got.bytes, order.data, order.len);
	assert_string_equal(got.spec.argv.v[0], "/bin/sh");
	assert_int_equal(got.vars_n, 2);
	for (size_t i = 0; i < got.vars_n; i++)
		assert_string_equal(got.vars[i], p.vars.v[i]);
	assert_null(got.vars[2]);
}

static void an_early_spawner_gets_no_trace(void **state)
{
	static const uint32_t versions[] = {PAYLOAD_TRACE_VERSION - 1, PAYLOAD_TRACE_VERSION};
	AUTO_DONE(start_plan) p = sample_plan();

	(void)state;
	strv_add(&p.vars, "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
	for (size_t i = 0; i < ELEMENTS(versions); i++) {
		AUTO_DONE(payload) got = {};
		AUTO_FD fd = payload_memfd(&p, versions[i], NULL);

		assert_true(payload_read(&got, fd, NULL));
		assert_int_equal(got.vars_n, 2 + i);
		assert_string_equal(got.vars[1], "JOBSCHED_NAME=");
	}
}

static void a_malformed_payload_is_refused(void **state)
{
	static const struct {
		uint32_t vars;
		const char *texts;
		size_t len;
		bool right;
	} table[] = {
		{0, "", 0, true},
		{1, "JOBSCHED_A=b", 13, true},
		{2, "JOBSCHED_A=\0JOBSCHED_B=\xc3\xa4", 26, true},
		{1, "JOBSCHED_A=b", 12, false},       /* not terminated */
		{1, "JOBSCHED_A=b\0x", 15, false},    /* one byte too many */
		{2, "JOBSCHED_A=b", 13, false},       /* one variable missing */
		{1, "PATH=/x", 8, false},             /* not a variable of a run */
		{1, "JOBSCHED_a=b", 13, false},
		{1, "JOBSCHED_=b", 12, false},
		{1, "JOBSCHED_A", 11, false},
		{1, "JOBSCHED_A=b\nc", 15, false},    /* two lines */
		{1, "JOBSCHED_A=\x1b", 13, false},
		{1, "JOBSCHED_A=\xff", 13, false},    /* not UTF-8 */
		{1, "JOBSCHED_PARAM_x=b", 19, false}, /* belongs to the exec spec */
		{UINT32_MAX, "JOBSCHED_A=b", 13, false},
	};
	AUTO_DONE(start_plan) plan = sample_plan();
	AUTO_DONE(buf) order = {};

	(void)state;
	assert_true(exec_spec_encode(&plan.spec, &order, NULL));
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		struct payload_head head = {PAYLOAD_MAGIC, (uint32_t)order.len, table[i].vars, 0};
		AUTO_DONE(payload) p = {};
		AUTO_DONE(buf) b = {};

		buf_add(&b, &head, sizeof(head));
		buf_add(&b, order.data, order.len);
		buf_add(&b, table[i].texts, table[i].len);
		if (payload_parse(&p, b.data, b.len, NULL) != table[i].right)
			fail_msg("row %zu", i);
		payload_done(&p);
		for (size_t at = 0; at < sizeof(head); at += 4) {
			b.data[at] ^= 1; /* every member of the head has one valid value */
			assert_false(payload_parse(&p, b.data, b.len, NULL));
			b.data[at] ^= 1;
		}
	}
	assert_false(payload_parse(&(struct payload){}, "", 0, NULL));
}

static void a_truncated_payload_is_refused(void **state)
{
	AUTO_DONE(start_plan) p = sample_plan();
	AUTO_FD fd = payload_memfd(&p, FRAME_VERSION, NULL);
	char bytes[256];
	ssize_t len = pread(fd, bytes, sizeof(bytes), 0);

	(void)state;
	for (ssize_t n = 0; n < len; n++)
		assert_false(payload_parse(&(struct payload){}, bytes, (size_t)n, NULL));
}

static void a_plan_over_a_limit_is_not_sent(void **state)
{
	AUTO_DONE(start_plan) p = sample_plan();
	struct err e = {};

	(void)state;
	strv_add(&p.vars, "JOBSCHED_X=a\nb");
	assert_int_equal(payload_memfd(&p, FRAME_VERSION, &e), -1);
	assert_int_equal(e.kind, ERR_INVALID);
	strv_done(&p.vars);
	for (int i = 0; i <= START_PLAN_VARS_MAX; i++)
		strv_add(&p.vars, "JOBSCHED_X=1");
	assert_int_equal(payload_memfd(&p, FRAME_VERSION, &e), -1);
	assert_int_equal(e.kind, ERR_TOO_LARGE);
}

/* ---- deadlines ---- */

static void deadlines_come_in_order_after_any_sets_and_clears(void **state)
{
	struct deadlines h = {};
	struct deadline d[200] = {};
	unsigned seed = 3;
	usec_t last = -1;
	size_t left = 0, taken = 0;

	(void)state;
	assert_int_equal(deadlines_next(&h), USEC_NEVER);
	for (int i = 0; i < 5000; i++) {
		struct deadline *one = &d[rand_r(&seed) % ELEMENTS(d)];

		if (rand_r(&seed) % 4 == 0)
			deadline_clear(&h, one);
		else
			deadline_set(&h, one, rand_r(&seed) % 1000);
	}
	for (size_t i = 0; i < ELEMENTS(d); i++)
		left += d[i].position != 0;
	assert_null(deadlines_take(&h, -1));
	for (struct deadline *one; (one = deadlines_take(&h, 999)); taken++) {
		assert_true(one->at >= last);
		assert_int_equal(one->position, 0);
		last = one->at;
	}
	assert_int_equal(taken, left);
	deadlines_done(&h);
}

/* ---- epoll sources ---- */

static void on_nothing(struct epoll_source *s, uint32_t events)
{
	(void)s;
	(void)events;
}

static void a_closed_source_is_not_watched_even_if_a_child_has_a_copy(void **state)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), ends[2], childs;
	struct epoll_event found;
	struct epoll_source s;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	childs = dup(ends[0]); /* like in a child that has not closed it yet */
	s = (struct epoll_source){ends[0], on_nothing};
	assert_int_equal(epoll_source_watch(ep, &s, EPOLL_CTL_ADD, EPOLLIN), 0);
	epoll_source_close(&s);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(epoll_wait(ep, &found, 1, 0), 0);
	close(childs);
	close(ends[1]);
	close(ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_closed_source_is_not_watched_even_if_a_child_has_a_copy),
		TEST(every_type_has_a_valid_frame),
		TEST(a_frame_of_another_length_is_refused),
		TEST(a_frame_from_the_wrong_side_or_of_unknown_type_is_refused),
		TEST(a_frame_in_the_wrong_phase_is_refused),
		TEST(every_number_is_checked_against_its_range),
		TEST(texts_must_be_terminated_and_padded_with_zeros),
		TEST(descriptors_are_accepted_only_with_frames_that_need_them),
		TEST(a_payload_in_the_frame_has_a_length_and_no_descriptors),
		TEST(the_highest_common_version_is_used),
		TEST(frames_and_descriptors_pass_through_a_socket),
		TEST(an_encoded_payload_is_decoded_unchanged),
		TEST(an_early_spawner_gets_no_trace),
		TEST(a_malformed_payload_is_refused),
		TEST(a_truncated_payload_is_refused),
		TEST(a_plan_over_a_limit_is_not_sent),
		TEST(deadlines_come_in_order_after_any_sets_and_clears),
	};

	return RUN_TESTS(tests);
}
