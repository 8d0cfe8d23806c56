/* SPDX-License-Identifier: Apache-2.0 */
/* Spawner protocol: one fixed-size frame per packet of a SOCK_SEQPACKET socket. */
/*
 * Handshake: the daemon sends hello with the range of versions it speaks. The spawner answers
 * welcome with the version that both use from then on, or refused, and closes the connection. The
 * spawner then sends sandboxes: the available sandbox profiles in a sealed memfd
 * (core/start/sandbox_offer.h). It sends them again after a change.
 *
 * Requests of the daemon:
 *   start          answered by started or not_started, later by ended. A repeated start gets the state of the first.
 *   start_small    the same, with the payload inside the frame. Since version 4.
 *   list           answered by has for each running worker, ended for each unacknowledged end, then list_done
 *   ack            the end is recorded; the spawner forgets it
 *   cancel         SIGTERM, the grace period of the start, SIGKILL; the end is reported like any other
 *   lease          when the run lease ends. Workers that must not run twice are ended by then, also if the daemon is
 *                  gone, and none is started later. The daemon repeats the frame with each renewal.
 *   forget_output  removes the output file of an attempt; attempt 0: the directory that the attempts of the run shared
 *   open_file      a child of the spawner opens a file as the owner of a job and sends the descriptor through the
 *                  socket that is passed with the frame (open_file.h). There is no answer. Since version 2.
 *   watch_tables   from now on (or no longer) the spawner reads the crontabs of the machine and sends tables: the list
 *                  in a sealed memfd (table_list.h), now and after each change. Since version 3.
 *
 * Since version 4 the spawner sends progress: what the command of a running worker reported, at most once a second
 * for each worker. It is not acknowledged. An attempt without a sign ends as stalled; older daemons are told timed_out.
 *
 * Since version 5 the spawner sends result before ended: lines of results of the worker, in as many frames as needed.
 * They are part of the end: each report of the end begins with them. An attempt that its gate did not let start ends
 * as gated; older daemons are told failed.
 *
 * Since version 6 the daemon sends state: a child of the spawner packs the directory that the attempts of a run share
 * into a memory file, or unpacks it, and reports through the socket that is passed with the frame (run_state.h). No
 * worker of the run may exist, except ended ones.
 *
 * A client that sends ask_warrant instead of hello gets one warrant frame; then the connection is
 * closed. A new connection gets no report about older workers until it has listed them or started
 * them again, so that the daemon can read its runs from the store first. The last connection that
 * sent hello is the daemon; the previous one gets superseded.
 */
#pragma once
#include "core/job/run.h"
#include "core/start/start_plan.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define FRAME_VERSION 6        /* the newest version that this program speaks */
#define FRAME_VERSION_OLDEST 1
/* Of frames in files, which a newer spawner reads after an upgrade; changes only when the layout of 'ended' does. */
#define FRAME_VERSION_STORED 3
#define FRAME_VERSION_STORED_RESULT 5 /* the same for 'result' */

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
	FRAME_WATCH_TABLES,
	FRAME_TABLES,
	FRAME_START_SMALL,
	FRAME_PROGRESS,
	FRAME_RESULT,
	FRAME_STATE,
	FRAME_TYPE_MAX
};

enum frame_from { FRAME_FROM_DAEMON, FRAME_FROM_SPAWNER };

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
	/* enum limit_kind: limits that this spawner cannot enforce and therefore refuses. */
	uint32_t limits_refused;
	uint32_t warrants; /* enum warrant_policy */
	uint32_t reserved;
	char spawner[64];
};
struct frame_refused {
	uint32_t oldest, newest;
	char error[FRAME_TEXT_MAX];
};
/* With descriptors: the payload (payload.h), then stdin if has_stdin, both sealed memfds, then the artifact directory if
 * has_artifact. */
struct frame_start {
	int64_t run, fence, attempt;
	int64_t timeout, grace; /* microseconds */
	int64_t output_limit; /* bytes */
	int64_t part;           /* 0: the command of the job, n: the n-th command of its notices */
	int64_t has_stdin, has_warrant, has_artifact;
	int64_t ends_with_lease;
	unsigned char warrant[WARRANT_LEN]; /* zero if has_warrant is 0 */
};
#define FRAME_PAYLOAD_MAX 1536 /* bytes of a payload inside a frame; a larger one is a sealed memfd */
struct frame_start_small {
	struct frame_start start; /* without descriptors: has_stdin and has_artifact are 0 */
	int64_t payload_len;
	char payload[FRAME_PAYLOAD_MAX]; /* zero after payload_len */
};
struct frame_ask_warrant { /* instead of a hello; the bytes to approve come in a sealed memfd */
	int64_t kind;  /* enum warrant_kind */
	int64_t check; /* 1: verify the warrant below; 0: make a new one */
	unsigned char warrant[WARRANT_LEN];
};
struct frame_warrant {
	int64_t given; /* 1: the warrant was made, or is valid */
	unsigned char warrant[WARRANT_LEN];
	char error[FRAME_TEXT_MAX];
};
struct frame_run { /* cancel, ack */
	int64_t run, fence;
};
struct frame_lease { /* CLOCK_BOOTTIME, microseconds; both 0: no limit */
	int64_t end_at;  /* SIGTERM, and no more starts */
	int64_t kill_at; /* SIGKILL */
};
struct frame_attempt { /* forget_output */
	int64_t run, attempt;
};
/* With descriptors: a sealed memfd with owner and path, and a socket for the answer. */
struct frame_open_file {
	int64_t run, fence;
	int64_t uid;
};
/* With descriptors: the memory file (to be packed: of the largest allowed size; to be unpacked: sealed), and a socket. */
struct frame_state {
	int64_t run, fence;
	int64_t uid;
	int64_t verb; /* enum run_state_verb */
	char owner[FRAME_TEXT_MAX];
};
struct frame_watch_tables {
	int64_t on; /* 0: tables are not read any more */
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

struct frame_progress {
	int64_t run, fence, attempt;
	int64_t percent; /* -1: not given */
	int64_t at;      /* of the sign */
	char text[FRAME_TEXT_MAX];
};

#define FRAME_RESULT_MAX 1280
struct frame_result {
	int64_t run, fence, attempt;
	int64_t at;                  /* bytes of results in the frames before; 0: the first */
	char text[FRAME_RESULT_MAX]; /* complete lines KEY=VALUE, see core/job/result.h */
};

struct frame {
	uint16_t type, version; /* the version is 0 in hello, welcome and refused */
	uint32_t size;          /* of the whole frame */
	union {
		struct frame_hello hello;
		struct frame_welcome welcome;
		struct frame_refused refused;
		struct frame_start start; /* also the first part of start_small */
		struct frame_start_small start_small;
		struct frame_ask_warrant ask_warrant;
		struct frame_warrant warrant;
		struct frame_run run;
		struct frame_attempt attempt;
		struct frame_lease lease;
		struct frame_open_file open_file;
		struct frame_state state;
		struct frame_watch_tables watch_tables;
		struct frame_started started;
		struct frame_not_started not_started;
		struct frame_ended ended;
		struct frame_progress progress;
		struct frame_result result;
	};
};
#define FRAME_HEAD offsetof(struct frame, hello)

const char *frame_type_name(unsigned type); /* "?" for an unknown type */

/* Sets type, version and size; the body is zero. */
void frame_init(struct frame *f, enum frame_type type, uint32_t version);
/* Turns a start into a start_small with this payload, of at most FRAME_PAYLOAD_MAX bytes. */
void frame_start_enclose(struct frame *f, const char *payload, size_t len);
void frame_text(char *to, size_t size, const char *text); /* cut to fit; NULL is empty */

/*
 * Whether 'len' bytes from that side are a valid frame: of this version (0: a handshake frame),
 * every value in its range, with the expected number of descriptors.
 */
bool frame_check(const struct frame *f, size_t len, size_t fds, enum frame_from from,
	uint32_t version, struct err *e);

/* The highest version in both ranges; 0: the ranges do not overlap. */
uint32_t frame_version_pick(uint32_t oldest, uint32_t newest, uint32_t their_oldest,
	uint32_t their_newest);

/* ---- the socket; all results are 0 or -errno ---- */
/* -EAGAIN: the socket is full. */
int frame_send(int fd, const struct frame *f, const int *fds, size_t n);
/*
 * Receives one packet. *ret_len 0: the peer has closed the connection. The caller owns the
 * descriptors; they are close-on-exec. -EBADMSG: the packet is too long or has too many
 * descriptors; all of them are closed.
 */
int frame_recv(int fd, struct frame *f, size_t *ret_len, int fds[FRAME_FDS_MAX], size_t *ret_n);
void frame_fds_close(int *fds, size_t n);
