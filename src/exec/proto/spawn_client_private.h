/* SPDX-License-Identifier: Apache-2.0 */
/* State of a client of the spawner, private to spawn_client*.c. */
#pragma once
#include "base/buf.h"
#include "exec/proto/frame.h"
#include "exec/proto/spawn_client.h"
#include "exec/proto/table_list.h"
#include <systemd/sd-event.h>

/* A frame that waits for room in the socket buffer. */
struct outgoing {
	struct frame frame;
	int fds[FRAME_FDS_MAX]; /* owned */
	size_t n;
	struct outgoing *next;
};

struct spawn_client {
	int fd;
	uint32_t version; /* 0: no welcome yet */
	enum warrant_policy warrants;
	char spawner[64];
	struct sandbox_offers *sandboxes; /* owned; NULL: not received yet */
	unsigned limits_refused;
	struct table_list tables;
	bool has_tables;
	sd_event_source *source;
	sd_event_source *deadline; /* for the welcome */
	bool told_stopped;         /* it was logged that the spawner is stopped */
	struct outgoing *first, **last;
	spawn_report_fn *fn;
	void *arg;
	/* CLOCK_BOOTTIME of the last frame sent into an empty socket; 0: none was sent. */
	usec_t unread_since;
	usec_t probed_at;
	/* owned; results of the run that is about to be reported as ended */
	struct buf results;
	int64_t results_run, results_fence;
	bool gone;     /* SPAWN_GONE was reported */
	bool *freed;   /* set by free() while reports are being delivered */
};

void spawn_client_outgoing_free(struct outgoing *o);
/* Sends queued frames while the socket has room. */
void spawn_client_flush(struct spawn_client *c);
/* Must be called before each frame is sent. */
void spawn_client_note_unread(struct spawn_client *c);
/* Sent, but not read by the spawner yet. */
int spawn_client_unread_bytes(const struct spawn_client *c);
