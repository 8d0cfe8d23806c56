/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of jobsched-net with the daemon. */
/*
 * Each packet of the SOCK_SEQPACKET socket is one frame of fixed size.
 * The daemon sends hello with the versions that it supports. The answer is welcome with the version
 * that both sides use from then on, or refused, after which the connection is closed. After welcome
 * the daemon sends, in this order:
 *   settings     limits that apply to all requests; sent again when the configuration changes
 *   hold         one per artifact that a run of an earlier connection still uses
 *   request      one per request that has no result yet; a repeated request continues the first one
 *   sync         all holds and requests have been sent
 * and later request, cancel, ack and settings as needed. A request is identified by (kind, id,
 * attempt). jobsched-net answers each request with one result, and repeats the result if the
 * request is repeated, until ack. After sync it sends 'has' for each unfinished webhook request of
 * an earlier connection, a result for each finished one, and then synced. Artifact requests of an
 * earlier connection that were neither held nor repeated are given up. need_file requests the file
 * of a 'file:' artifact: the daemon passes the socket that comes with it to the spawner. A new
 * hello replaces the previous connection, which gets superseded.
 */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define NET_FRAME_VERSION 1
#define NET_FRAME_VERSION_OLDEST 1 /* NET_FRAME_VERSION - 1, once that exists */

enum net_frame_type {
	NET_HELLO = 1,
	NET_SETTINGS,
	NET_HOLD,
	NET_REQUEST,
	NET_SYNC,
	NET_CANCEL,
	NET_ACK,
	NET_WELCOME,
	NET_REFUSED,
	NET_RESULT,
	NET_HAS,
	NET_SYNCED,
	NET_NEED_FILE,
	NET_SUPERSEDED,
	NET_FRAME_TYPE_MAX
};

enum net_frame_from { NET_FROM_DAEMON, NET_FROM_NET };

enum net_kind {
	/* id: notice, attempt: try. Texts: URL, then headers; body: the content */
	NET_KIND_WEBHOOK = 1,
	NET_KIND_ARTIFACT,    /* id: run, attempt: fence. Texts: URL, SHA-256 */
	NET_KIND_MAX
};

enum net_outcome {
	NET_DONE,   /* for an artifact with a descriptor of its directory */
	NET_FAILED, /* a retry would probably fail too */
	NET_BUSY,   /* temporary; the request can be retried later */
	NET_OUTCOME_MAX
};

#define NET_TEXT_MAX 512 /* texts are NUL-terminated and padded with NULs */
#define NET_KEY_MAX 96
#define NET_NODE_MAX 128
#define NET_FDS_MAX 1

struct net_id {
	int64_t kind, id, attempt;
};
struct net_hello { /* the same in every version, as are welcome and refused */
	uint32_t oldest, newest;
	char node[NET_NODE_MAX];
};
struct net_welcome {
	uint32_t version, reserved;
};
struct net_refused {
	uint32_t oldest, newest;
	char error[NET_TEXT_MAX];
};
struct net_settings {
	int64_t budget; /* bytes of all artifacts on the disk */
};
struct net_hold {
	struct net_id id;
	int64_t uid;
	char key[NET_KEY_MAX];
};
struct net_request { /* with a payload (net_payload_memfd) as a sealed memfd */
	struct net_id id;
	int64_t uid;     /* the owner */
	int64_t limit;   /* bytes of one artifact, fetched and unpacked; 0 for other kinds */
	int64_t timeout; /* microseconds */
};
struct net_result { /* with a descriptor if it is an artifact that is done */
	struct net_id id;
	int64_t outcome; /* enum net_outcome */
	char error[NET_TEXT_MAX];
};

struct net_frame {
	uint16_t type, version; /* the version is 0 in hello, welcome and refused */
	uint32_t size;          /* of the whole frame */
	union {
		struct net_hello hello;
		struct net_welcome welcome;
		struct net_refused refused;
		struct net_settings settings;
		struct net_hold hold;
		struct net_request request;
		struct net_result result;
		struct net_id id; /* cancel, ack, has, need_file */
	};
};
#define NET_FRAME_HEAD offsetof(struct net_frame, hello)

void net_frame_init(struct net_frame *f, enum net_frame_type type, uint32_t version);
/* truncated if necessary; NULL is empty */
void net_frame_text(char *to, size_t size, const char *text);
bool net_frame_id_equal(const struct net_id *a, const struct net_id *b);

/*
 * Checks that 'len' bytes from that side are a valid frame of this version (0: handshake) with the
 * right number of descriptors.
 */
bool net_frame_check(const struct net_frame *f, size_t len, size_t fds, enum net_frame_from from,
	uint32_t version, struct err *e);

/* Both return 0 or -errno; -EAGAIN: the socket is full or empty. */
int net_frame_send(int fd, const struct net_frame *f, int passed /* -1: none */);
/*
 * *ret_len 0: the other side has closed the connection. The caller owns *ret_fd; -1: none was
 * passed.
 */
int net_frame_recv(int fd, struct net_frame *f, size_t *ret_len, int *ret_fd);

/*
 * The name of an artifact in the cache. A local file is opened as the owner of the job, so its key
 * contains the uid.
 */
char *net_frame_artifact_key(
	const char *url, const char *sha256, int64_t uid, char out[NET_KEY_MAX]);
