/* SPDX-License-Identifier: Apache-2.0 */
/* What a spawner hands to the program that takes its place in the same process: a sealed memory file. */
/*
 * The file: a magic word and the version, then records: kind and length (32 bits each), the numbers of the kind in the
 * order of its table, and what is left as one text. The last record is the end. Descriptors are the same numbers in
 * the new program. Nothing is taken over unless every record was understood.
 */
#pragma once
#include "exec/proto/frame.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct conns;
struct err;
struct workers;

#define STATE_VERSION 1        /* what we write */
#define STATE_VERSION_OLDEST 1 /* what we can still read */
#define STATE_MAX (256 << 20)

/* What does not belong to a worker or a connection. */
struct state_head {
	int listen, output_dir, lock;
	int groups;                       /* the directory of control groups; -1: none */
	int64_t groups_next;
	int64_t nofile_soft, nofile_hard; /* what workers get: our own were raised */
	int64_t lease_end, lease_kill;
	int stopping;
	int64_t stop_until, idle_since;
	char id[64];
};

struct state_fds { /* those that must stay open */
	int *v;
	size_t n, cap;
};

struct state; /* as it was read; nothing has been done with it */

/* A descriptor, or -errno; *ret gets those of everything that is in it. */
int state_save(const struct state_head *h, const struct conns *cs, struct workers *ws, struct state_fds *ret);
void state_fds_done(struct state_fds *f);
void state_fds_inherit(const struct state_fds *f, bool on); /* over an exec, or not */

/* Reads and checks all of it. From then on only the descriptors it names are open, and none is inherited. */
bool state_open(int fd, struct state **ret, struct err *e);
const struct state_head *state_head(const struct state *s);
bool state_apply(const struct state *s, struct conns *cs, struct workers *ws, struct err *e);
void state_free(struct state *s);

/* ---- within the module: the tables ---- */
enum state_kind { STATE_HEAD = 1, STATE_CONN, STATE_WORKER, STATE_TOLD, STATE_ADOPTED, STATE_END, STATE_KIND_MAX };

struct state_field {
	const char *name;
	size_t offset, size; /* of an integer in the struct of its kind */
	int64_t min, max;
	bool fd;             /* a descriptor; -1 where min is */
};

struct state_table {
	const char *name;
	const struct state_field *fields;
	size_t n;
	size_t text_max;
};
extern const struct state_table state_tables[STATE_KIND_MAX];
#define STATE_MAGIC UINT32_C(0x7473626a) /* "jbst" */

struct state_conn { /* and the node as text */
	int fd, engine, full;
	uint32_t version, lists;
	int64_t hello_until;
};
struct state_told { /* and the frame */
	int asked;
	uint32_t news;
};
struct state_adopted {
	int64_t pid, run, fence;
	int looks;
};
