/* SPDX-License-Identifier: Apache-2.0 */
/* Test server in its own process, with clients of several users. Needs root to use several uids. */
#pragma once
#include "base/auto.h"
#include "base/err.h"
#include "daemon/api/server.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ROOT 0
#define ANN 1       /* 'daemon' and 'bin' are users on every machine */
#define BOB 2
#define EVE 3       /* 'sys' */
#define NAMELESS 54321
#define OVERFLOW 65534
#define ADMINS "games" /* a group on every machine */
#define ADMIN (1u << 31) /* flag: the user is in this group, as in BOB | ADMIN */

#define JOB "{\"command\":[\"true\"],\"schedule\":\"2199-01-01T00:00:00Z\"%s}"

struct rig {
	char dir[64];
	char *socket;
	char *allow, *deny; /* owned paths */
	pid_t server;
};

extern const struct server_limits rig_generous;
void rig_start(
	struct rig *rig, const struct server_limits *limits); /* skips the test without root */
void rig_stop(struct rig *rig);

struct rig_reply {
	enum err_kind kind;
	json_t *json; /* owned; NULL: error */
	char msg[512];
};
void rig_reply_done(struct rig_reply *a);

struct rig_reply rig_request(const struct rig *rig, uint32_t uid, const char *method,
	const char *target, const char *body);
enum err_kind rig_request_kind(const struct rig *rig, uint32_t uid, const char *method,
	const char *target, const char *body);
enum err_kind rig_submit(const struct rig *rig, uint32_t uid, const char *more);

/* The raw bytes of a response, head and body. */
char *rig_request_raw(const struct rig *rig, uint32_t uid, const char *method, const char *target,
	const char *body);
