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
struct peer {
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
	struct peer *peer;
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
	struct map peers;          /* by uid, owned */
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

/* server.c */
void server_run(struct server *s); /* lets MHD work, then sets its timers */
void server_resumed(struct server *s); /* a connection was resumed: MHD must run soon */

/* server_accept.c */
bool server_listen(struct server *s, int fd /* moved */, struct err *e);
void server_unlisten(struct server *s);
void server_conn_enter(struct conn *c, enum conn_phase phase); /* and starts its time limit */
void server_conn_free(struct conn *c);

/* server_peer.c */
struct peer *client_user_get(struct server *s, uint32_t uid);
void client_users_done(struct server *s);

/* server_request.c */
void request_drop_body(struct request *r); /* frees it and what it is charged with */
enum MHD_Result request_on_call(void *arg, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len, void **state);
void request_on_completed(void *arg, struct MHD_Connection *mhd, void **state,
	enum MHD_RequestTerminationCode why);
void request_abandon(struct request *r); /* the daemon stops: 503, or the end of a stream */
void request_refuse_waiting(struct request *r, const struct err *why, bool unknown); /* server_refuse_waiting() */

/* server_identity.c */
#define NO_GROUP ((gid_t)-1)
void request_handle(struct request *r); /* calls the route, after it is known who asks and that he may */
void server_forget_admins(struct server *s);
bool server_conn_is_admin(const struct conn *c); /* by the kernel's word: the groups it had when it connected */

/* server_audit.c */
void request_refused(const struct request *r, const struct err *why);

/* server_answer.c */
void request_free(struct request *r);
void request_resume(struct request *r);
enum MHD_Result request_queue(struct request *r); /* hands the answer to MHD */
