/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid and unexpected input on the socket of the spawner. */
#include "unit/unit.h"
#include "base/buf.h"
#include "base/auto.h"
#include "base/io.h"
#include "exec/proto/payload.h"
#include "spawner_rig.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void a_common_protocol_version_is_agreed_or_the_daemon_is_refused(void **state)
{
	struct frame f;
	int fd;

	(void)state;
	fd = rig_raw(&g);
	hello_frame(&f, FRAME_VERSION, FRAME_VERSION + 5); /* a newer daemon that still supports this version */
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
	rig_expect_serving(&g);
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
	rig_expect_serving(&g);
}

/* A valid start frame, and functions that make it invalid. */
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
static void spoil_part(struct frame *f) { f->start.part = 1; } /* the job has no notices */
static void spoil_stdin(struct frame *f) { f->start.has_stdin = 2; }
static void spoil_fds(struct frame *f) { f->start.has_stdin = 1; } /* only one descriptor is sent */
static void spoil_again(struct frame *f) { hello_frame(f, 1, 1); }

static void malformed_frames_close_only_their_connection(void **state)
{
	static void (*const spoils[])(struct frame *) = {spoil_short, spoil_cut, spoil_version, spoil_type,
		spoil_direction, spoil_run, spoil_fence, spoil_timeout, spoil_grace, spoil_limit, spoil_part,
		spoil_stdin, spoil_fds, spoil_again};
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo never >$RIG/never");
	AUTO_FD payload = payload_memfd(&p, FRAME_VERSION, NULL);

	(void)state;
	for (size_t i = 0; i < ELEMENTS(spoils); i++) {
		int fd = raw_greeted();
		struct frame f;

		good_start(&f);
		spoils[i](&f);
		assert_int_equal(frame_send(fd, &f, &payload, 1), 0);
		expect_closed(fd);
	}
	assert_int_equal(rig_file_size(&g, "never"), 0);
	rig_expect_serving(&g);
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

static void unsealed_or_invalid_payloads_close_the_connection(void **state)
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
	rig_expect_serving(&g);
}

/* Connects with version 4, which has start_small. */
static int raw_greeted_newest(void)
{
	int fd = rig_raw(&g);
	struct frame f;

	hello_frame(&f, FRAME_VERSION, FRAME_VERSION);
	assert_int_equal(frame_send(fd, &f, NULL, 0), 0);
	assert_true(raw_next(fd, &f) > 0);
	assert_int_equal(f.type, FRAME_WELCOME);
	assert_true(raw_next(fd, &f) > 0);
	assert_int_equal(f.type, FRAME_SANDBOXES);
	return fd;
}

static void invalid_payloads_in_the_frame_close_the_connection(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo never >$RIG/never");
	AUTO_DONE(buf) payload = {};

	(void)state;
	assert_true(payload_encode(&p, FRAME_VERSION, &payload, NULL));
	assert_in_range(payload.len, 1, FRAME_PAYLOAD_MAX);
	for (size_t i = 0; i < 4; i++) {
		int fd = raw_greeted_newest();
		struct frame f;

		good_start(&f);
		f.version = FRAME_VERSION;
		frame_start_enclose(&f, payload.data, payload.len);
		if (i == 0)
			f.start_small.payload_len--; /* the last text is cut */
		else if (i == 1)
			f.start_small.payload_len++; /* the texts end before the last byte */
		else if (i == 2)
			f.start_small.payload_len = FRAME_PAYLOAD_MAX + 8;
		else
			f.start_small.payload[0] ^= 1;
		assert_int_equal(frame_send(fd, &f, NULL, 0), 0);
		expect_closed(fd);
	}
	assert_int_equal(rig_file_size(&g, "never"), 0);
	rig_expect_serving(&g);
}

static void unexpected_descriptors_close_the_connection(void **state)
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
	rig_expect_serving(&g);
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
	rig_expect_serving(&g);
}

static void the_spawner_survives_random_frames(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int i = 0; i < 300; i++) {
		int fd = i % 2 ? raw_greeted() : rig_raw(&g);
		struct frame f;
		unsigned char *bytes = (unsigned char *)&f;

		for (size_t k = 0; k < sizeof(f); k++)
			bytes[k] = (unsigned char)(rand_r(&seed) >> 4);
		if (i % 3) { /* a valid head passes the first checks */
			struct frame head;

			frame_init(&head, (enum frame_type)(1 + rand_r(&seed) % (FRAME_TYPE_MAX - 1)), 1);
			memcpy(&f, &head, FRAME_HEAD);
		} else {
			f.size = (uint32_t)(rand_r(&seed) % sizeof(f) + 1);
		}
		frame_send(fd, &f, NULL, 0);
		close(fd);
	}
	rig_expect_serving(&g);
}

static void silent_connections_do_not_block_others(void **state)
{
	int idle[12];

	(void)state;
	for (size_t i = 0; i < ELEMENTS(idle); i++)
		idle[i] = rig_raw(&g);
	rig_expect_serving(&g);
	for (size_t i = 0; i < ELEMENTS(idle); i++)
		close(idle[i]);
}

static void a_connection_of_another_user_is_refused(void **state)
{
	struct frame f;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(g.dir, 0755), 0);
	assert_int_equal(chmod(g.sock, 0777), 0); /* so that only the check of the uid refuses the connection */
	pid = fork();
	if (pid == 0) {
		int fd = setuid(65534) == 0 ? rig_raw(&g) : -1;

		_exit(fd >= 0 && recv(fd, &f, sizeof(f), 0) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(g.dir, 0700), 0);
	rig_expect_serving(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_common_protocol_version_is_agreed_or_the_daemon_is_refused),
		TEST(frames_before_hello_close_the_connection),
		TEST(malformed_frames_close_only_their_connection),
		TEST(unsealed_or_invalid_payloads_close_the_connection),
		TEST(invalid_payloads_in_the_frame_close_the_connection),
		TEST(unexpected_descriptors_close_the_connection),
		TEST(packets_of_every_length_close_the_connection),
		TEST(the_spawner_survives_random_frames),
		TEST(silent_connections_do_not_block_others),
		TEST(a_connection_of_another_user_is_refused),
	};

	return cmocka_run_group_tests(tests, up, down);
}
