/* SPDX-License-Identifier: Apache-2.0 */
/* State of the API server; private to its files. */
#pragma once
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "daemon/api/access.h"
#include "daemon/api/auth/rate_limit.h"
#include "daemon/api/auth/tcp_address.h"
#include "daemon/api/request.h"
#include "daemon/api/server.h"
#include <microhttpd.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

struct jwt_keys;
struct tls_files;
struct token_cache;
struct tcp_source;
TAILQ_HEAD(tcp_sources, tcp_source);
struct web_listener;
TAILQ_HEAD(web_listeners, web_listener);

#define HEAD_MAX (16 * 1024)

/* One user. Kept until the daemon exits. */
struct client_user {
	uint32_t uid;
	size_t connections;
	size_t body_bytes;   /* of all its requests */
	double tokens;       /* submissions left in the bucket; negative after a bulk request */
	usec_t refilled;     /* CLOCK_BOOTTIME; 0: never */
	char *name;          /* owned; NULL: not looked up yet */
	usec_t name_at;
	int64_t number;      /* owner number, valid if the name is known: core/job/owner.h */
};

/*
 * The phases have different timeouts: before the first request, between requests, during a body.
 * PHASE_BUSY: no timeout, the server is processing a request.
 */
enum conn_phase { PHASE_HEAD, PHASE_IDLE, PHASE_BODY, PHASE_BUSY, PHASE_MAX };

/* One MHD daemon. TLS needs its own, and a new certificate a new one. */
struct mhd_loop {
	struct server *server;
	struct MHD_Daemon *mhd;
	sd_event_source *on_mhd;
	size_t connections;
	bool retired;              /* has an old certificate; freed with its last connection */
	TAILQ_ENTRY(mhd_loop) in_server;
};
TAILQ_HEAD(mhd_loops, mhd_loop);

struct conn {
	struct server *server;
	struct mhd_loop *loop;
	/* of the kernel's uid; over TCP shared by the connections of an address */
	struct client_user *user;
	/* ---- TCP ---- */
	bool tcp, tls, loopback;
	bool certified;            /* the client certificate was verified */
	uint16_t port;             /* of the server */
	int64_t address_key;       /* see tcp_address_key() */
	char address[TCP_ADDRESS_TEXT]; /* of the client */
	struct err bad_target;     /* of the request in progress; see http_guard_target() */
	/* ---- all ---- */
	int fd;                    /* owned by MHD */
	int64_t pid;               /* of the client */
	gid_t gid;                 /* primary group of the client */
	enum conn_phase phase;
	usec_t deadline;           /* of the phase, CLOCK_BOOTTIME */
	bool extended; /* the deadline was moved because the daemon had not read the input */
	bool reserved;             /* not counted in users_connections */
	bool bad_escape;           /* %00 or an invalid %XX in the target */
	struct request *request;   /* NULL: between requests */
	TAILQ_ENTRY(conn) in_phase;
};
TAILQ_HEAD(conn_queue, conn);

struct server {
	sd_event *event;
	struct server_context context;
	struct server_limits limits;
	struct access access;
	int listen_fd;
	/* closed to accept and refuse one more client when there are no descriptors left */
	int reserve_fd;
	sd_event_source *on_accept, *on_timeout, *on_again, *on_deadline, *on_relief;
	usec_t deadline_armed;     /* time of on_deadline, while it is enabled */
	struct mhd_loops loops;
	struct mhd_loop *plain, *tls; /* for new connections; NULL tls: none */
	struct server_tcp *tcp;    /* NULL: no TCP */
	gid_t admin_gid;           /* NO_GROUP: none */
	struct group_task *group_task; /* looks up admin_gid; NULL: no lookup in progress */
	struct user_lookup *user_lookup;       /* the user database */
	struct map users;          /* by uid, owned */
	struct conn_queue phases[PHASE_MAX]; /* each sorted by deadline */
	size_t connections;
	size_t users_connections;  /* of these, without those of root and of the reserve */
	size_t body_bytes;         /* of all requests of users */
	struct conn *arriving;     /* during MHD_add_connection() */
	bool stopping, resumed;
	usec_t started;            /* CLOCK_BOOTTIME */
	usec_t refusal_logged;
	struct output_watch *outputs; /* created for the first follower */
};

void server_run(struct server *s);     /* calls MHD, then sets its timers */
/* Starts another MHD daemon; with 'tls' one that speaks TLS. */
bool server_add_loop(struct server *s, const struct tls_files *tls, struct mhd_loop **ret,
	struct err *e);
void server_retire_loop(struct server *s, struct mhd_loop *l);
/* A connection was resumed; MHD runs in the next loop iteration. */
void server_resumed(struct server *s);
#define NO_GROUP ((gid_t)-1)
void server_forget_admins(struct server *s); /* cancels the lookup of the administrators' group */

/* ---- connections ---- */
bool server_listen(struct server *s, int fd /* moved */, struct err *e);
void server_unlisten(struct server *s);
/* Also starts the timeout of the phase. */
void server_conn_enter(struct conn *c, enum conn_phase phase);
void server_conn_free(struct conn *c);
bool server_conn_is_admin(const struct conn *c); /* by its groups at the time of connect() */
/* Refuses the connection if there are too many. 'c' has its user. False: closed. */
bool server_conn_admit(struct conn *c);
void server_conn_serve(struct conn *c, const struct sockaddr *addr, socklen_t len);
#define ACCEPT_BURST 256 /* connections accepted before the loop continues */
void server_log_refusal(struct server *s, const char *why); /* at most one line per minute */

/* ---- TCP: server_tcp.c ---- */
struct server_tcp {
	struct server *server;
	struct tcp_sources sources;
	struct web_listeners webs;
	struct tls_files *tls;     /* NULL: plain HTTP on loopback */
	sd_event_source *on_tls_check;
	struct strv hosts;         /* names of this server, besides addresses */
	struct token_cache *tokens;
	struct jwt_keys *jwt;      /* NULL: JSON web tokens are not accepted */
	struct rate_limit requests; /* by token */
	struct rate_limit failures; /* by address: failed authentications */
	struct map addresses;      /* struct client_user by address, owned; those with connections */
	size_t connections;
	usec_t session_life;
};
/* Starts to read the tokens, with the first listener. */
bool server_tcp_read_tokens(struct server *s, struct err *e);
/* Gives up the address of a connection that ends. */
void server_tcp_conn_done(struct conn *c);
void server_tcp_unlisten(struct server *s);
void server_tcp_free(struct server_tcp *t); /* without connections */

/* ---- users ---- */
struct client_user *client_user_get(struct server *s, uint32_t uid);
void client_users_done(struct server *s);
