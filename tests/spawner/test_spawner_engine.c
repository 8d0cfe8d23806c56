/* SPDX-License-Identifier: Apache-2.0 */
/* Engines and spawners that come, go, die and talk nonsense, while jobs run. */
#include "core/job/start_failure.h"
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "exec/proto/payload.h"
#include "exec/proto/spawner_launch.h"
#include "spawner/spawner_rig.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <time.h>

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

/* Each run of the job leaves a byte in the file. */
static long runs_of(const char *name)
{
	AUTO_TEXT path = xprintf("%s/%s", g.dir, name);
	AUTO_DONE(buf) text = {};

	return io_read_file(path, &text, 4096) < 0 ? 0 : (long)text.len;
}

static void touch(const char *name)
{
	AUTO_TEXT path = xprintf("%s/%s", g.dir, name);

	assert_int_equal(io_write_file(path, "", 0, 0600), 0);
}

/* ---- engines ---- */

static void a_job_survives_its_engine_and_its_end_is_kept(void **state)
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
	touch("go1");
	assert_true(rig_wait_gone((pid_t)pid));
	rig_connect(&g);
	rig_spin(&g, 100 * USEC_MSEC);
	assert_int_equal(g.n - rig_count(&g, SPAWN_REPORT_MAX, 0), 0); /* nothing before it is asked for */
	spawn_client_list(g.client);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.exit_code, 9);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	assert_int_equal(rig_count(&g, SPAWN_HAS, 0), 0);
	rig_disconnect(&g); /* not acknowledged: it comes again */
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
	assert_int_equal(runs_of("survivor"), 1);
}

/* A start that is under way when its engine leaves is completed: the next engine hears of the run. */
/* A start that is not in the list has not begun, and never will: the engine starts it again. */
static void a_start_whose_engine_leaves_at_once_runs_once(void **state)
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
		assert_int_equal(runs_of(name), 1);
		spawn_client_ack(g.client, p.run, p.fence);
	}
	g.n = g.seen = 0; /* later tests count reports */
}

static void a_start_that_is_repeated_starts_once(void **state)
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
	rig_start(&g, &p); /* also by another engine */
	assert_int_equal(rig_wait(&g, SPAWN_STARTED, p.run)->r.pid, pid);
	touch("go2");
	rig_wait(&g, SPAWN_ENDED, p.run);
	rig_start(&g, &p);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.pid, pid);
	assert_int_equal(runs_of("once"), 1);
	spawn_client_ack(g.client, p.run, p.fence);
	p.fence++; /* a new claim is a new start */
	rig_run(&g, &p);
	assert_int_equal(runs_of("once"), 2);
}

/* It says so in a word of its own: the engine gives such a run back at once, and nobody waits longer each time. */
static void without_a_lease_nothing_is_started_and_nothing_is_held_against_the_run(void **state)
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
	assert_string_equal(r->error, "the lease of this node is over");
	spawn_client_ack(g.client, p.run, p.fence);
	spawn_client_lease(g.client, now + USEC_HOUR, now + USEC_HOUR);
	p.fence++;
	rig_run(&g, &p);
	spawn_client_lease(g.client, 0, 0);
	assert_int_equal(runs_of("leased"), 1);
}

static void two_claims_of_one_run_are_told_apart(void **state)
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

static void a_newer_engine_displaces_the_older(void **state)
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
	spawn_client_list(g.client); /* into the void */
	spawn_client_list(other.client);
	rig_wait(&other, SPAWN_LIST_DONE, 0);
	rig_disconnect(&other);
	rig_disconnect(&g);
	free(other.reports);
	rig_connect(&g);
}

static void many_starts_in_one_breath_all_run(void **state)
{
	(void)state;
	for (int i = 0; i < 600; i++) { /* more than the socket takes: some wait in the client */
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

static void an_engine_that_does_not_read_stops_nothing(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "head -c 1000000 /dev/zero; printf x >>$RIG/unread");

	(void)state;
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0); /* all that was said before is heard */
	for (int i = 0; i < 400; i++) { /* as long as nobody runs the loop, nothing is read */
		rig_start(&g, &p);
		p.run = g.next_run++;
	}
	for (int i = 0; i < 6000 && runs_of("unread") < 50; i++)
		poll(NULL, 0, 10);
	assert_true(runs_of("unread") >= 50);
	for (int i = 0; i < 400; i++)
		spawn_client_ack(g.client, rig_wait(&g, SPAWN_ENDED, 0)->r.run, 1);
}

/* ---- nonsense ---- */

static void hello_frame(struct frame *f, uint32_t oldest, uint32_t newest)
{
	frame_init(f, FRAME_HELLO, 0);
	f->hello.oldest = oldest;
	f->hello.newest = newest;
	strcpy(f->hello.node, "raw");
}

/* The next packet of a raw connection. 0: closed by the spawner. */
static ssize_t raw_next(int fd, struct frame *f)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	do {
		assert_int_equal(poll(&p, 1, 10000), 1);
		n = recv(fd, f, sizeof(*f), 0);
	} while (n < 0 && errno == ECONNRESET);
	return n;
}

static int raw_greeted(void)
{
	int fd = rig_raw(&g);
	struct frame f;

	hello_frame(&f, 1, 1);
	assert_int_equal(frame_send(fd, &f, NULL, 0), 0);
	assert_true(raw_next(fd, &f) > 0);
	assert_int_equal(f.type, FRAME_WELCOME);
	assert_true(raw_next(fd, &f) > 0);
	assert_int_equal(f.type, FRAME_SANDBOXES);
	return fd;
}

static void expect_closed(int fd)
{
	struct frame f;

	assert_int_equal(raw_next(fd, &f), 0);
	close(fd);
}

/* The spawner that heard all this still runs jobs. */
static void expect_alive(void)
{
	rig_disconnect(&g);
	rig_connect(&g);
	assert_int_equal(rig_script(&g, "exit 0")->r.outcome, ATTEMPT_SUCCEEDED);
}

static void a_version_in_common_is_agreed_or_refused(void **state)
{
	struct frame f;
	int fd;

	(void)state;
	fd = rig_raw(&g);
	hello_frame(&f, FRAME_VERSION, FRAME_VERSION + 5); /* a newer engine that still speaks ours */
	assert_int_equal(frame_send(fd, &f, NULL, 0), 0);
	assert_true(raw_next(fd, &f) > 0);
	assert_int_equal(f.type, FRAME_WELCOME);
	assert_int_equal(f.welcome.version, FRAME_VERSION);
	close(fd);
	fd = rig_raw(&g);
	hello_frame(&f, FRAME_VERSION + 1, FRAME_VERSION + 2);
	assert_int_equal(frame_send(fd, &f, NULL, 0), 0);
	assert_true(raw_next(fd, &f) > 0);
	assert_int_equal(f.type, FRAME_REFUSED);
	assert_int_equal(f.refused.newest, FRAME_VERSION);
	expect_closed(fd);
	expect_alive();
}

static void frames_before_hello_close_the_connection(void **state)
{
	(void)state;
	for (unsigned type = 0; type < FRAME_TYPE_MAX + 2; type++) {
		int fd = rig_raw(&g);
		struct frame f;

		if (type == FRAME_HELLO)
			continue;
		frame_init(&f, FRAME_LIST, 1);
		f.type = (uint16_t)type;
		assert_int_equal(frame_send(fd, &f, NULL, 0), 0);
		expect_closed(fd);
	}
	expect_alive();
}

/* One frame that is right, and the ways to spoil it. */
static void good_start(struct frame *f)
{
	frame_init(f, FRAME_START, 1);
	f->start = (struct frame_start){.run = 1 << 20, .fence = 1, .attempt = 1, .output_limit = 1000};
}

static void spoil_short(struct frame *f) { f->size = 8; }
static void spoil_cut(struct frame *f) { f->size -= 8; }
static void spoil_version(struct frame *f) { f->version = 2; }
static void spoil_type(struct frame *f) { f->type = 200; }
static void spoil_direction(struct frame *f) { frame_init(f, FRAME_ENDED, 1); f->ended.run = 1; }
static void spoil_run(struct frame *f) { f->start.run = 0; }
static void spoil_fence(struct frame *f) { f->start.fence = -1; }
static void spoil_timeout(struct frame *f) { f->start.timeout = -5; }
static void spoil_grace(struct frame *f) { f->start.grace = INT64_MAX; }
static void spoil_limit(struct frame *f) { f->start.output_limit = -1; }
static void spoil_part(struct frame *f) { f->start.part = 1; } /* the order has no notice */
static void spoil_stdin(struct frame *f) { f->start.has_stdin = 2; }
static void spoil_fds(struct frame *f) { f->start.has_stdin = 1; } /* only one comes */
static void spoil_again(struct frame *f) { hello_frame(f, 1, 1); }

static void malformed_frames_close_the_connection_and_nothing_else(void **state)
{
	static void (*const spoils[])(struct frame *) = {spoil_short, spoil_cut, spoil_version, spoil_type,
		spoil_direction, spoil_run, spoil_fence, spoil_timeout, spoil_grace, spoil_limit, spoil_part,
		spoil_stdin, spoil_fds, spoil_again};
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo never >$RIG/never");
	AUTO_FD payload = payload_memfd(&p, NULL);

	(void)state;
	for (size_t i = 0; i < ELEMENTS(spoils); i++) {
		int fd = raw_greeted();
		struct frame f;

		good_start(&f);
		spoils[i](&f);
		assert_int_equal(frame_send(fd, &f, &payload, 1), 0);
		expect_closed(fd);
	}
	assert_int_equal(runs_of("never"), 0);
	expect_alive();
}

static int unsealed(void)
{
	int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, "x", 1), 1);
	return fd;
}

static int garbage(void)
{
	return io_memfd_sealed("garbage", "this is not a payload at all", 28);
}

static int empty(void)
{
	return io_memfd_sealed("empty", "", 0);
}

static int plain_file(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int too_large(void)
{
	int fd = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, PAYLOAD_MAX + 1), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
	return fd;
}

static void payloads_that_are_not_sealed_or_not_right_close_the_connection(void **state)
{
	static int (*const payloads[])(void) = {unsealed, garbage, empty, plain_file, too_large};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(payloads); i++) {
		AUTO_FD payload = payloads[i]();
		int fd = raw_greeted();
		struct frame f;

		good_start(&f);
		assert_int_equal(frame_send(fd, &f, &payload, 1), 0);
		expect_closed(fd);
	}
	expect_alive();
}

static void descriptors_that_nobody_asked_for_close_the_connection(void **state)
{
	AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char room[CMSG_SPACE(sizeof(int) * 200)] = {};
	struct frame f;
	struct iovec iov = {&f, 8};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = raw_greeted();

	(void)state;
	frame_init(&f, FRAME_LIST, 1);
	assert_int_equal(frame_send(fd, &f, &null, 1), 0);
	expect_closed(fd);
	fd = raw_greeted();
	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * 200)};
	for (size_t i = 0; i < 200; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &null, sizeof(int));
	assert_int_equal(sendmsg(fd, &msg, 0), 8);
	expect_closed(fd);
	expect_alive();
}

static void packets_of_every_length_close_the_connection(void **state)
{
	char bytes[2048] = {};

	(void)state;
	for (size_t len = 1; len <= sizeof(bytes); len += len < 24 ? 1 : 97) {
		int fd = raw_greeted();

		assert_int_equal(send(fd, bytes, len, 0), (ssize_t)len);
		expect_closed(fd);
	}
	expect_alive();
}

static void random_frames_are_survived(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int i = 0; i < 300; i++) {
		int fd = i % 2 ? raw_greeted() : rig_raw(&g);
		struct frame f;
		unsigned char *bytes = (unsigned char *)&f;

		for (size_t k = 0; k < sizeof(f); k++)
			bytes[k] = (unsigned char)(rand_r(&seed) >> 4);
		if (i % 3) { /* a right head gets further */
			struct frame head;

			frame_init(&head, (enum frame_type)(1 + rand_r(&seed) % (FRAME_TYPE_MAX - 1)), 1);
			memcpy(&f, &head, FRAME_HEAD);
		} else {
			f.size = (uint32_t)(rand_r(&seed) % sizeof(f) + 1);
		}
		frame_send(fd, &f, NULL, 0);
		close(fd);
	}
	expect_alive();
}

static void a_connection_that_says_nothing_does_not_hinder_others(void **state)
{
	int idle[12];

	(void)state;
	for (size_t i = 0; i < ELEMENTS(idle); i++)
		idle[i] = rig_raw(&g);
	expect_alive();
	for (size_t i = 0; i < ELEMENTS(idle); i++)
		close(idle[i]);
}

static void another_user_is_not_served(void **state)
{
	struct frame f;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(g.dir, 0755), 0);
	assert_int_equal(chmod(g.sock, 0777), 0); /* so that only the spawner is in the way */
	pid = fork();
	if (pid == 0) {
		int fd = setuid(65534) == 0 ? rig_raw(&g) : -1;

		_exit(fd >= 0 && recv(fd, &f, sizeof(f), 0) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(g.dir, 0700), 0);
	expect_alive();
}

/* ---- spawners ---- */

static void a_second_spawner_leaves_with_69(void **state)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT command = xprintf("'%s/jobsched-spawner' --runtime-dir '%s' --output-dir '%s' 2>/dev/null",
		build ? build : ".", g.dir, g.output);
	int status = system(command);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 69);
	expect_alive();
}

static void a_new_spawner_ends_what_a_killed_one_left(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo $$ >$RIG/main; setsid sh -c 'echo $$ >$RIG/side; sleep 300; :' >/dev/null & "
					 "trap '' TERM; sleep 300; :");
	AUTO_TEXT old = xstrdup(spawn_client_spawner(g.client));
	pid_t main_pid, side;

	(void)state;
	rig_start(&g, &p);
	main_pid = rig_file_pid(&g, "main");
	side = rig_file_pid(&g, "side");
	rig_spawner_kill(&g);
	rig_wait(&g, SPAWN_GONE, 0);
	assert_true(rig_wait_gone(main_pid)); /* by the death of its parent */
	assert_int_equal(kill(side, 0), 0);
	rig_spawner_start(&g);
	assert_true(kill(side, 0) < 0 || rig_wait_gone(side));
	rig_disconnect(&g);
	rig_connect(&g);
	assert_string_not_equal(spawn_client_spawner(g.client), old);
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	assert_int_equal(rig_count(&g, SPAWN_HAS, 0), 0);
}

static void a_spawner_that_is_stopped_ends_its_jobs_and_says_so(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "sleep 300");
	AUTO_DONE(start_plan) late = rig_plan(&g, "exit 0");
	const struct rig_report *r;

	(void)state;
	rig_start(&g, &p);
	rig_wait(&g, SPAWN_STARTED, p.run);
	kill(g.spawner, SIGTERM);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.outcome, ATTEMPT_LOST);
	assert_string_equal(r->error, "ended because the spawner was stopped");
	rig_start(&g, &late);
	assert_true(rig_wait(&g, SPAWN_NOT_STARTED, late.run)->r.reason == START_STOPPING);
	spawn_client_ack(g.client, p.run, p.fence);
	rig_wait(&g, SPAWN_GONE, 0);
	assert_int_equal(waitpid(g.spawner, NULL, 0), g.spawner);
	rig_disconnect(&g);
	rig_spawner_start(&g);
	rig_connect(&g);
}

static void nobody_listens_is_unreachable(void **state)
{
	AUTO_TEXT path = xprintf("%s/nothing.sock", g.dir);
	struct spawn_client *c = NULL;
	struct err e = {};

	(void)state;
	assert_false(spawn_client_open(g.ev, path, "rig", NULL, NULL, &c, &e));
	assert_int_equal(e.kind, ERR_UNREACHABLE);
	assert_null(c);
}

/* A socket of this process that accepts no connection. */
static int silent_listener(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static void take_kinds(const struct spawn_report *r, void *arg)
{
	unsigned *kinds = arg;

	*kinds |= 1U << r->kind;
	if (r->kind == SPAWN_GONE)
		assert_string_equal(r->error, "the spawner does not answer");
}

/* The deadline of the first connection is over when the second is given up. */
static void a_stopped_spawner_is_waited_for_and_a_silent_one_is_given_up(void **state)
{
	AUTO_TEXT path = xprintf("%s/silent.sock", g.dir);
	usec_t until = clock_boot(&clock_system) + RIG_PATIENCE;
	struct spawn_client *stopped = NULL, *silent = NULL;
	unsigned of_stopped = 0, of_silent = 0;
	AUTO_FD fd = silent_listener(path);
	struct spawn_health h;
	struct err e = {};

	(void)state;
	kill(g.spawner, SIGSTOP);
	assert_true(spawn_client_connect(g.ev, g.sock, "rig", take_kinds, &of_stopped, &stopped, &e));
	assert_true(spawn_client_connect(g.ev, path, "rig", take_kinds, &of_silent, &silent, &e));
	assert_int_equal(of_stopped | of_silent, 0);
	while (!of_silent && clock_boot(&clock_system) < until)
		sd_event_run(g.ev, 100000);
	assert_int_equal(of_silent, 1U << SPAWN_GONE);
	assert_int_equal(of_stopped, 0);
	spawn_client_health(stopped, &h);
	assert_true(h.stopped);
	kill(g.spawner, SIGCONT);
	while (!of_stopped && clock_boot(&clock_system) < until + RIG_PATIENCE)
		sd_event_run(g.ev, 100000);
	assert_int_equal(of_stopped, 1U << SPAWN_CONNECTED);
	assert_string_equal(spawn_client_spawner(stopped), spawn_client_spawner(g.client));
	spawn_client_free(silent);
	spawn_client_free(stopped);
	rig_wait(&g, SPAWN_SUPERSEDED, 0);
	rig_disconnect(&g);
	rig_connect(&g);
}

static void a_launched_spawner_serves_survives_us_and_leaves_when_idle(void **state)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT program = xprintf("%s/jobsched-spawner", build ? build : ".");
	struct rig other = {.next_run = 1, .ev = g.ev};
	AUTO_TEXT pid_of = NULL;
	AUTO_TEXT clean = NULL;
	AUTO_TEXT log = NULL;
	struct err e = {};
	FILE *out;
	int pid = 0;

	(void)state;
	strcpy(other.dir, "/tmp/rig.XXXXXX");
	assert_non_null(mkdtemp(other.dir));
	snprintf(other.sock, sizeof(other.sock), "%s/spawner.sock", other.dir);
	snprintf(other.output, sizeof(other.output), "%s/output", other.dir);
	assert_true(spawner_launch(program, other.dir, other.output, &e));
	assert_true(spawner_launch(program, other.dir, other.output, &e)); /* one is there: nothing to do */
	other.output_dir = open(other.output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rig_connect(&other);
	rig_expect(&other, "ps -o ppid= -o sid= -p $PPID | { read -r p s; [ $s != $p ] && echo $PPID >$RIG/pid; }; "
			   "echo hi", "hi\n");
	pid_of = xprintf("cat %s/pid", other.dir);
	out = popen(pid_of, "re");
	assert_int_equal(fscanf(out, "%d", &pid), 1);
	pclose(out);
	assert_int_not_equal(waitpid(pid, NULL, WNOHANG), 0); /* not our child */
	kill(pid, SIGTERM);
	rig_wait(&other, SPAWN_GONE, 0);
	assert_true(rig_wait_gone(pid));
	assert_false(spawner_launch("/does/not/exist", other.dir, other.output, &e));
	rig_disconnect(&other);
	free(other.reports);
	close(other.output_dir);
	log = xprintf("grep -q 'leaves' %s/spawner.log", other.dir);
	assert_int_equal(system(log), 0);
	clean = xprintf("rm -rf %s", other.dir);
	assert_int_equal(system(clean), 0);
}

static void an_idle_spawner_leaves_but_not_with_an_end_to_report(void **state)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT command = NULL;
	struct rig other = {.next_run = 1, .ev = g.ev};
	usec_t from;

	(void)state;
	strcpy(other.dir, "/tmp/rig.XXXXXX");
	assert_non_null(mkdtemp(other.dir));
	snprintf(other.sock, sizeof(other.sock), "%s/spawner.sock", other.dir);
	snprintf(other.output, sizeof(other.output), "%s/output", other.dir);
	command = xprintf("'%s/jobsched-spawner' --background --runtime-dir %s --output-dir %s --linger 1",
		build ? build : ".", other.dir, other.output);
	assert_int_equal(system(command), 0);
	{
		AUTO_DONE(start_plan) p = rig_plan(&other, "exit 0");

		rig_connect(&other);
		rig_start(&other, &p);
		rig_wait(&other, SPAWN_ENDED, p.run);
		rig_disconnect(&other);
		poll(NULL, 0, 1500);
		rig_connect(&other); /* it is still there */
		spawn_client_list(other.client);
		rig_wait(&other, SPAWN_ENDED, p.run);
		spawn_client_ack(other.client, p.run, p.fence);
		spawn_client_list(other.client);
		rig_wait(&other, SPAWN_LIST_DONE, 0);
		rig_wait(&other, SPAWN_LIST_DONE, 0);
		rig_disconnect(&other);
	}
	from = clock_boot(&clock_system);
	while (access(other.sock, F_OK) == 0 && clock_boot(&clock_system) - from < RIG_PATIENCE)
		poll(NULL, 0, 20);
	assert_true(clock_boot(&clock_system) - from >= 900 * USEC_MSEC);
	assert_true(access(other.sock, F_OK) < 0);
	free(other.reports);
	free(command);
	command = xprintf("rm -rf %s", other.dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_survives_its_engine_and_its_end_is_kept),
		TEST(a_start_whose_engine_leaves_at_once_runs_once),
		TEST(a_start_that_is_repeated_starts_once),
		TEST(without_a_lease_nothing_is_started_and_nothing_is_held_against_the_run),
		TEST(two_claims_of_one_run_are_told_apart),
		TEST(a_newer_engine_displaces_the_older),
		TEST(many_starts_in_one_breath_all_run),
		TEST(an_engine_that_does_not_read_stops_nothing),
		TEST(a_version_in_common_is_agreed_or_refused),
		TEST(frames_before_hello_close_the_connection),
		TEST(malformed_frames_close_the_connection_and_nothing_else),
		TEST(payloads_that_are_not_sealed_or_not_right_close_the_connection),
		TEST(descriptors_that_nobody_asked_for_close_the_connection),
		TEST(packets_of_every_length_close_the_connection),
		TEST(random_frames_are_survived),
		TEST(a_connection_that_says_nothing_does_not_hinder_others),
		TEST(another_user_is_not_served),
		TEST(a_second_spawner_leaves_with_69),
		TEST(a_new_spawner_ends_what_a_killed_one_left),
		TEST(a_spawner_that_is_stopped_ends_its_jobs_and_says_so),
		TEST(nobody_listens_is_unreachable),
		TEST(a_stopped_spawner_is_waited_for_and_a_silent_one_is_given_up),
		TEST(a_launched_spawner_serves_survives_us_and_leaves_when_idle),
		TEST(an_idle_spawner_leaves_but_not_with_an_end_to_report),
	};

	return cmocka_run_group_tests(tests, up, down);
}
