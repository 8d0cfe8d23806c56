/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the server share, and nobody else. */
#pragma once
#include "base/map.h"
#include "daemon/api/access.h"
#include "daemon/api/request.h"
#include "daemon/api/server.h"
#include <microhttpd.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#define HEAD_MAX (16 * 1024)

/* One user, for as long as the daemon lives. */
struct client_user {
	uint32_t uid;
	size_t connections;
	size_t body_bytes;   /* of the bodies of its requests */
	double tokens;       /* submissions it may make at once; below zero after a big one */
	usec_t refilled;     /* CLOCK_BOOTTIME; 0: never */
	char *name;          /* owned; NULL: not looked up yet */
	usec_t name_at;
	int64_t number;      /* as an owner, once the name is known: core/job/owner.h */
};

/* Before the first request, between two, within a body: timed, each in its own way. PHASE_BUSY: our turn. */
enum conn_phase { PHASE_HEAD, PHASE_IDLE, PHASE_BODY, PHASE_BUSY, PHASE_MAX };

struct conn {
	struct server *server;
	struct client_user *user;
	int fd;                    /* MHD's */
	int64_t pid;               /* of whoever connected */
	gid_t gid;                 /* the first of its groups */
	enum conn_phase phase;
	usec_t deadline;           /* of the phase, CLOCK_BOOTTIME */
	bool extended;             /* the deadline was moved because the daemon had not read the input */
	bool reserved;             /* not counted as one of the users' connections */
	bool bad_escape;           /* %00 or a broken %XX in the target */
	struct request *request;   /* the current one; NULL: between two */
	TAILQ_ENTRY(conn) in_phase;
};
TAILQ_HEAD(conn_queue, conn);

struct server {
	sd_event *event;
	struct server_context context;
	struct server_limits limits;
	struct access access;
	int listen_fd;
	int reserve_fd;            /* closed to answer one more client when descriptors run out */
	sd_event_source *on_accept, *on_mhd, *on_timeout, *on_again, *on_deadline, *on_relief;
	usec_t deadline_armed;     /* what on_deadline waits for, while it is enabled */
	struct MHD_Daemon *mhd;
	gid_t admin_gid;           /* NO_GROUP: there is none */
	struct group_task *group_task; /* looks it up; NULL: nobody does */
	struct user_lookup *user_lookup;       /* the user database */
	struct map users;          /* by uid, owned */
	struct conn_queue phases[PHASE_MAX]; /* each in order of its deadlines */
	size_t connections;
	size_t users_connections;  /* of these, without root's and those that use the reserve */
	size_t body_bytes;         /* of users' requests */
	struct conn *arriving;     /* being handed to MHD */
	bool stopping, resumed;
	usec_t started;            /* CLOCK_BOOTTIME */
	usec_t refusal_logged;
	struct output_watch *outputs; /* made by the first follower */
};

void server_run(struct server *s);     /* calls MHD, then sets its timers */
void server_resumed(struct server *s); /* a connection was resumed; MHD runs in the next loop iteration */
#define NO_GROUP ((gid_t)-1)
void server_forget_admins(struct server *s); /* cancels the lookup of the administrators' group */

/* ---- connections ---- */
bool server_listen(struct server *s, int fd /* moved */, struct err *e);
void server_unlisten(struct server *s);
void server_conn_enter(struct conn *c, enum conn_phase phase); /* also starts the timeout of the phase */
void server_conn_free(struct conn *c);
bool server_conn_is_admin(const struct conn *c); /* by its groups at the time of connect() */

/* ---- users ---- */
struct client_user *client_user_get(struct server *s, uint32_t uid);
void client_users_done(struct server *s);
