/* SPDX-License-Identifier: Apache-2.0 */
/* A server in a process of its own, and users who ask it. Needs root to be several users. */
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
#define ADMINS "games" /* a group on every machine ... */
#define ADMIN (1u << 31) /* ... that this user is in: BOB | ADMIN */

#define JOB "{\"command\":[\"true\"],\"schedule\":\"2199-01-01T00:00:00Z\"%s}"

struct rig {
	char dir[64];
	char *socket;
	char *allow, *deny; /* owned paths */
	pid_t server;
};

extern const struct server_limits rig_generous;
void rig_start(struct rig *rig, const struct server_limits *limits); /* skips the test where we are not root */
void rig_stop(struct rig *rig);

struct said {
	enum err_kind kind;
	json_t *json; /* owned; NULL on an error */
	char msg[512];
};
void said_done(struct said *a);

struct said ask(const struct rig *rig, uint32_t uid, const char *method, const char *target, const char *body);
enum err_kind kind_of(const struct rig *rig, uint32_t uid, const char *method, const char *target, const char *body);
enum err_kind submit(const struct rig *rig, uint32_t uid, const char *more);

/* The bare bytes of an answer, head and body. */
char *ask_raw(const struct rig *rig, uint32_t uid, const char *method, const char *target, const char *body);
