/* SPDX-License-Identifier: Apache-2.0 */
/* What engine and spawner say to each other: one fixed frame per packet of a SOCK_SEQPACKET socket. */
/*
 * The engine says hello with the versions it speaks and gets a welcome with the one both use from then on
 * (or refused, and the end of the connection). It hears at once, and again when that changes, which sandboxes there are (see
 * core/job/sandbox_offer.h, in a sealed memfd). After that:
 *   start        is answered by started or not_started, later by ended; a repeated one by what became of the first
 *   list         has for everything that runs, ended for what is not acknowledged, then list_done
 *   ack          the end is recorded: the spawner forgets it
 *   cancel       SIGTERM, the grace of the plan, SIGKILL; the end is reported like any other
 *   lease        until when the engine may have workers that must not run twice: they are ended by then, whatever has
 *                become of the engine, and none is started after it; told anew while all is well
 *   forget_output  the kept output of an attempt is removed
 *   open_file    a child of the spawner opens a file as the owner of a job and sends it through the socket that comes with
 *                the frame (see open_file.h); there is no answer. Since version 2.
 * Who says ask_warrant instead of hello gets a warrant or the reason why not, and the end of the connection.
 * A new connection hears nothing of older workers before it has listed them or started them again, so that an
 * engine can take its runs over first. Whoever says hello last is the engine; the one before gets superseded.
 */
#pragma once
#include "core/job/run.h"
#include "core/job/start_plan.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define FRAME_VERSION 2        /* the newest version that this program speaks */
#define FRAME_VERSION_OLDEST 1

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_START,
	FRAME_CANCEL,
	FRAME_ACK,
	FRAME_LIST,
	FRAME_LEASE,
	FRAME_FORGET_OUTPUT,
	FRAME_ASK_WARRANT,
	FRAME_WELCOME,
	FRAME_REFUSED,
	FRAME_STARTED,
	FRAME_NOT_STARTED,
	FRAME_HAS,
	FRAME_ENDED,
	FRAME_LIST_DONE,
	FRAME_SUPERSEDED,
	FRAME_SANDBOXES,
	FRAME_WARRANT,
	FRAME_OPEN_FILE,
	FRAME_TYPE_MAX
};

enum frame_from { FRAME_FROM_ENGINE, FRAME_FROM_SPAWNER };

#define FRAME_TEXT_MAX 256 /* texts are NUL-terminated and padded with NULs */
#define FRAME_NODE_MAX 128
#define FRAME_FDS_MAX 3
#define FRAME_STDIN_MAX (INT64_C(16) << 20)

struct frame_hello { /* the same in every version, as are welcome and refused */
	uint32_t oldest, newest;
	char node[FRAME_NODE_MAX];
};
struct frame_welcome {
	uint32_t version;
	uint32_t limits_refused; /* enum limit_kind: what this spawner cannot enforce, and refuses */
	uint32_t warrants; /* enum warrant_policy */
	uint32_t reserved;
	char spawner[64];
};
struct frame_refused {
	uint32_t oldest, newest;
	char error[FRAME_TEXT_MAX];
};
struct frame_start { /* with a payload (see payload.h) and, if so said, the stdin as sealed memfds, and a directory */
	int64_t run, fence, attempt;
	int64_t timeout, grace; /* microseconds */
	int64_t output_limit;
	int64_t part;           /* of the order: 0 its command, n the n-th command of its notices */
	int64_t has_stdin, has_warrant, has_artifact;
	int64_t ends_with_lease;
	unsigned char warrant[WARRANT_LEN]; /* zeroes where there is none */
};
struct frame_ask_warrant { /* instead of a hello, with what is to be approved as a sealed memfd */
	int64_t kind;  /* enum warrant_kind */
	int64_t check; /* whether the one below holds; else a new one is wanted */
	unsigned char warrant[WARRANT_LEN];
};
struct frame_warrant {
	int64_t given; /* or: it holds */
	unsigned char warrant[WARRANT_LEN];
	char error[FRAME_TEXT_MAX];
};
struct frame_run { /* cancel, ack */
	int64_t run, fence;
};
struct frame_lease { /* boottime, microseconds; both 0: for ever */
	int64_t end_at;  /* SIGTERM, and no more starts */
	int64_t kill_at; /* SIGKILL */
};
struct frame_attempt { /* forget_output */
	int64_t run, attempt;
};
struct frame_open_file { /* with the owner and the path in a sealed memfd, and a socket */
	int64_t run, fence;
	int64_t uid;
};
struct frame_started { /* started, has */
	int64_t run, fence, attempt;
	int64_t pid, started_at;
};
struct frame_not_started {
	int64_t run, fence, attempt;
	int64_t reason; /* enum start_failure */
	char error[FRAME_TEXT_MAX];
};
struct frame_ended {
	int64_t run, fence, attempt;
	int64_t pid, started_at, ended_at;
	int64_t outcome; /* enum attempt_outcome */
	int64_t exit_code, term_signal;
	int64_t cpu_user, cpu_system, max_rss;
	int64_t io_read, io_written; /* -1: not known */
	int64_t output_bytes, output_dropped;
	char error[FRAME_TEXT_MAX];
};

struct frame {
	uint16_t type, version; /* the version is 0 in hello, welcome and refused */
	uint32_t size;          /* of the whole frame */
	union {
		struct frame_hello hello;
		struct frame_welcome welcome;
		struct frame_refused refused;
		struct frame_start start;
		struct frame_ask_warrant ask_warrant;
		struct frame_warrant warrant;
		struct frame_run run;
		struct frame_attempt attempt;
		struct frame_lease lease;
		struct frame_open_file open_file;
		struct frame_started started;
		struct frame_not_started not_started;
		struct frame_ended ended;
	};
};
#define FRAME_HEAD offsetof(struct frame, hello)

const char *frame_type_name(unsigned type); /* "?" when there is none */

/* An empty frame of that type: zeroes but for its head. */
void frame_init(struct frame *f, enum frame_type type, uint32_t version);
void frame_text(char *to, size_t size, const char *text); /* cut to fit; NULL is empty */

/*
 * Whether 'len' bytes from that side are a frame of this version (0: only the hello or its answers) with nothing
 * out of range, accompanied by as many descriptors as it should be.
 */
bool frame_check(const struct frame *f, size_t len, size_t fds, enum frame_from from, uint32_t version,
	struct err *e);

/* The highest version in both ranges; 0: none. */
uint32_t frame_version_pick(uint32_t oldest, uint32_t newest, uint32_t their_oldest,
	uint32_t their_newest);

/* ---- the socket; all results are 0 or -errno ---- */
int frame_send(int fd, const struct frame *f, const int *fds, size_t n); /* -EAGAIN: the socket is full */
/*
 * One packet. *ret_len 0: the other side is gone. Descriptors are the caller's then, close-on-exec.
 * -EBADMSG: too long, or with more descriptors than any frame has; they are closed.
 */
int frame_recv(int fd, struct frame *f, size_t *ret_len, int fds[FRAME_FDS_MAX], size_t *ret_n);
void frame_fds_close(int *fds, size_t n);
