/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of jobsched-net with the daemon. */
/*
 * Each packet of the SOCK_SEQPACKET socket is one frame of fixed size; see the end of this comment for version 4.
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
 * Since version 2: a call is a run that is a request, not a command. jobsched-net reports its end with call_result
 * instead of result, and 'has' for each unfinished call of an earlier connection. need_secret requests a file
 * that the call names, as need_file does. deadline is the end of the node's run lease: jobsched-net ends the calls
 * that must not outlive it.
 * Since version 3: a storage request reads or writes an object of S3-compatible storage. Its result has a descriptor of the answer
 * (net/s3_payload.h). need_file requests the file of an upload; the daemon sends a packet with its descriptor.
 * Since version 4: a packet has one or more frames (net/net_packet.h), and only one if it has a descriptor. A payload or a
 * response of at most NET_INLINE_MAX bytes can follow the fields of its request or call_result; 'size' includes it, and
 * no descriptor is passed.
 */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define NET_FRAME_VERSION 4
#define NET_FRAME_VERSION_OLDEST 1
#define NET_FRAME_VERSION_CALLS 2  /* the first version with calls */
#define NET_FRAME_VERSION_S3 3     /* the first version with storage requests */
#define NET_FRAME_VERSION_BATCH 4  /* the first version with several frames in a packet, and with payloads in frames */

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
	NET_DEADLINE,
	NET_NEED_SECRET,
	NET_CALL_RESULT,
	NET_FRAME_TYPE_MAX
};

enum net_frame_from { NET_FROM_DAEMON, NET_FROM_NET };

enum net_kind {
	/* id: notice, attempt: try. Texts: URL, then headers; body: the content */
	NET_KIND_WEBHOOK = 1,
	NET_KIND_ARTIFACT,    /* id: run, attempt: fence. Texts: URL, SHA-256 */
	NET_KIND_OTLP,        /* spans. id: time, attempt: try. Texts and body as those of a webhook */
	NET_KIND_CALL,        /* id: run, attempt: fence. Texts: see net/call/call_payload.h */
	NET_KIND_S3,          /* id: number, attempt: random. Texts: see net/s3_payload.h */
	NET_KIND_MAX
};

enum net_outcome {
	NET_DONE,   /* with a descriptor: the directory of an artifact, the answer of the storage */
	NET_FAILED, /* a retry would probably fail too */
	NET_BUSY,   /* temporary; the request can be retried later */
	NET_OUTCOME_MAX
};

enum net_call_outcome {
	NET_CALL_OK,
	NET_CALL_RETRY,       /* failed; a retry may succeed */
	NET_CALL_FAILED,      /* failed; a retry would fail too */
	NET_CALL_GONE,        /* failed; the server says that no further call is wanted */
	NET_CALL_TIMED_OUT,
	NET_CALL_LOST,        /* ended at the deadline of the run lease */
	NET_CALL_NOT_STARTED, /* nothing was sent */
	NET_CALL_LATE,        /* nothing was sent: the time or the lease of the start was over */
	NET_CALL_OUTCOME_MAX
};

#define NET_TEXT_MAX 512 /* texts are NUL-terminated and padded with NULs */
#define NET_KEY_MAX 96
#define NET_NODE_MAX 128
#define NET_FDS_MAX 1
#define NET_SECRETS_MAX 16
#define NET_KEPT_MAX (64 << 10) /* bytes of the response of a call */
#define NET_INLINE_MAX (4 << 10) /* bytes that follow the fields of a frame */

struct net_id {
	int64_t kind, id, attempt;
};
struct net_hello { /* the same in every version, as are welcome and refused */
	uint32_t oldest, newest;
	char node[NET_NODE_MAX];
};
struct net_welcome {
	uint32_t version;
	uint32_t life; /* random for each process of jobsched-net; 0 in version 1 */
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
struct net_request { /* with a payload (net_payload_encode) after the frame or as a sealed memfd */
	struct net_id id;
	int64_t uid;     /* the owner */
	/* bytes of one artifact, fetched and unpacked; of a call: the number of the attempt; else 0 */
	int64_t limit;
	int64_t timeout; /* microseconds */
};
struct net_result { /* with a descriptor if it is an artifact or a storage request that is done */
	struct net_id id;
	int64_t outcome; /* enum net_outcome */
	char error[NET_TEXT_MAX];
};
struct net_deadline {
	int64_t end_at; /* boottime; USEC_NEVER: none */
};
struct net_need_secret {
	struct net_id id;
	int64_t index; /* of the secret in the payload */
};
struct net_call_result { /* if 'kept' is not 0, with the end of the response after the frame or as a sealed memfd */
	struct net_id id;
	int64_t number;      /* of the attempt */
	int64_t outcome;     /* enum net_call_outcome */
	int64_t status;      /* of HTTP; 0: none */
	int64_t retry_after; /* microseconds that the server asks to wait; 0: none */
	int64_t bytes, kept; /* of the response */
	int64_t ended_at;    /* boottime */
	char error[NET_TEXT_MAX];
};

struct net_frame {
	uint16_t type, version; /* the version is 0 in hello, welcome and refused */
	uint32_t size;          /* of the whole frame, with the bytes that follow its fields */
	union {
		struct net_hello hello;
		struct net_welcome welcome;
		struct net_refused refused;
		struct net_settings settings;
		struct net_hold hold;
		struct net_request request;
		struct net_result result;
		struct net_deadline deadline;
		struct net_need_secret need_secret;
		struct net_call_result call;
		struct net_id id; /* cancel, ack, has, need_file */
	};
};
#define NET_FRAME_HEAD offsetof(struct net_frame, hello)

void net_frame_init(struct net_frame *f, enum net_frame_type type, uint32_t version);
/* truncated if necessary; NULL is empty */
void net_frame_text(char *to, size_t size, const char *text);
bool net_frame_id_equal(const struct net_id *a, const struct net_id *b);
int64_t net_frame_id_hash(const struct net_id *id); /* key for a map; different ids can have the same */

/*
 * Checks that 'len' bytes from that side are a valid frame of this version (0: handshake) with the
 * right number of descriptors. Only the bytes of 'f' are read, not those that follow it.
 */
bool net_frame_check(const struct net_frame *f, size_t len, size_t fds, enum net_frame_from from,
	uint32_t version, struct err *e);

size_t net_frame_bytes(const struct net_frame *f); /* of a valid frame: how many follow its fields */

/*
 * The name of an artifact in the cache. A local file is opened as the owner of the job, so its key
 * contains the uid.
 */
char *net_frame_artifact_key(
	const char *url, const char *sha256, int64_t uid, char out[NET_KEY_MAX]);
