/* SPDX-License-Identifier: Apache-2.0 */
/* A child plan as bytes and descriptors: how the spawner hands a start to a launcher. */
/*
 * Both sides are the same program (/proc/self/exe), so plain structs are passed. The bytes lie in memory that the two share;
 * the descriptors go through a socket.
 */
#pragma once
#include "exec/worker/cgroup.h"
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
	struct child_report word; /* of the start under way */
	size_t len;             /* of the request; the spawner overwrites it when the start is done */
	char request[] __attribute__((aligned(16)));
};
#define LAUNCH_ARENA_SIZE ((size_t)8 << 20) /* more than an order, its variables and its paths together */
#define LAUNCH_REQUEST_MAX (LAUNCH_ARENA_SIZE - sizeof(struct launch_arena))

void launch_request_encode(const struct child_plan *p, struct buf *out, struct launch_fds *ret /* borrowed from the plan */);

struct launch_request {
	struct child_plan plan;      /* all below is what it borrows */
	struct user user;
	struct child_limits limits;
	struct fences fences;
	struct cgroup cgroup;
	char **texts;                /* owned */
};
/* Texts stay where they are in 'data'. False: it does not add up. */
bool launch_request_decode(struct launch_request *ret, char *data, size_t len, const struct sandboxes *all, const struct launch_fds *fds);
void launch_request_done(struct launch_request *d);

/* ---- what every launcher has ---- */
enum { LAUNCHER_SOCKET = 3, LAUNCHER_ARENA, LAUNCHER_SETTINGS, LAUNCHER_RULESET, LAUNCHER_NETWORK, LAUNCHER_INIT, LAUNCHER_SELF, LAUNCHER_FDS };

int launch_request_settings_make(const struct sandboxes *s); /* a sealed memfd, or -errno */
bool launch_request_settings_read(struct sandboxes *ret, int fd);

/* In a launcher: takes starts from LAUNCHER_SOCKET until the spawner closes it. */
int launcher_main(void);
