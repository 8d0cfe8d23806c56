/* SPDX-License-Identifier: Apache-2.0 */
/* The request to a launcher: an encoded child plan. */
/*
 * Both sides are the same program (/proc/self/exe), so plain structs are passed. The bytes are in
 * memory that both processes share; the descriptors are passed through a socket.
 */
#pragma once
#include "exec/child/child.h"
#include "exec/child/sandbox.h"
#include "exec/child/user.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define LAUNCH_FDS_MAX (CHILD_EXTRA_FDS_MAX + 4)
struct launch_fds {
	int v[LAUNCH_FDS_MAX];
	size_t n;
};

/* Shared by the spawner and one launcher. */
struct launch_arena {
	struct child_report report; /* of the current start */
	/* of the request, which the spawner overwrites with zeros when the start is done */
	size_t len;
	char request[] __attribute__((aligned(16)));
};
/* more than the largest command, environment and paths together */
#define LAUNCH_ARENA_SIZE ((size_t)8 << 20)
/* *ret is borrowed from the plan. */
#define LAUNCH_REQUEST_MAX (LAUNCH_ARENA_SIZE - sizeof(struct launch_arena))
void launch_request_encode(
	const struct child_plan *p, struct buf *out, struct launch_fds *ret);

struct launch_request {
	struct child_plan plan;      /* borrows the other members */
	struct user user;
	struct child_limits limits;
	struct sandbox_prepared sandbox;
	int cgroup;
	char **texts;                /* owned */
};
/* The texts stay in 'data'. False: the request is malformed. */
bool launch_request_decode(struct launch_request *ret, char *data, size_t len,
	const struct sandbox_set *all, const struct launch_fds *fds);
void launch_request_done(struct launch_request *d);

/* ---- descriptors and settings of every launcher ---- */
enum {
	LAUNCHER_SOCKET = 3,
	LAUNCHER_ARENA,
	LAUNCHER_SETTINGS,
	LAUNCHER_RULESET,
	LAUNCHER_NETWORK,
	LAUNCHER_INIT,
	LAUNCHER_SELF,
	LAUNCHER_FDS
};

int launch_request_settings_make(const struct sandbox_set *s); /* a sealed memfd, or -errno */
bool launch_request_settings_read(struct sandbox_set *ret, int fd);

/*
 * The main function of a launcher: handles requests from LAUNCHER_SOCKET until the spawner closes
 * it.
 */
int launcher_main(void);
