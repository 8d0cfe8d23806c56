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

#define REEXEC_STATE_VERSION 1        /* what we write */
#define REEXEC_STATE_VERSION_OLDEST 1 /* what we can still read */
#define REEXEC_STATE_MAX (256 << 20)

/* What does not belong to a worker or a connection. */
struct reexec_state_head {
	int listen, output_dir, lock;
	int groups;                       /* the directory of control groups; -1: none */
	int64_t groups_next;
	int64_t nofile_soft, nofile_hard; /* what workers get: our own were raised */
	int64_t lease_end, lease_kill;
	int stopping;
	int64_t stop_until, idle_since;
	char id[64];
};

struct reexec_state_fds { /* those that must stay open */
	int *v;
	size_t n, cap;
};

struct reexec_state; /* as it was read; nothing has been done with it */

/* A descriptor, or -errno; *ret gets those of everything that is in it. */
int reexec_state_save(const struct reexec_state_head *h, const struct conns *cs, struct workers *ws, struct reexec_state_fds *ret);
void reexec_state_fds_done(struct reexec_state_fds *f);
void reexec_state_fds_inherit(const struct reexec_state_fds *f, bool on); /* over an exec, or not */

/* Reads and checks all of it. From then on only the descriptors it names are open, and none is inherited. */
bool reexec_state_open(int fd, struct reexec_state **ret, struct err *e);
const struct reexec_state_head *reexec_state_head(const struct reexec_state *s);
bool reexec_state_apply(const struct reexec_state *s, struct conns *cs, struct workers *ws, struct err *e);
void reexec_state_free(struct reexec_state *s);

/* ---- within the module: the tables ---- */
enum reexec_state_kind { REEXEC_STATE_HEAD = 1, REEXEC_STATE_CONN, REEXEC_STATE_WORKER, REEXEC_STATE_ENDED, REEXEC_STATE_ORPHAN, REEXEC_STATE_LAST, REEXEC_STATE_KIND_MAX };

struct reexec_state_field {
	const char *name;
	size_t offset, size; /* of an integer in the struct of its kind */
	int64_t min, max;
	bool fd;             /* a descriptor; -1 where min is */
};

struct reexec_state_table {
	const char *name;
	const struct reexec_state_field *fields;
	size_t n;
	size_t text_max;
};
extern const struct reexec_state_table reexec_state_tables[REEXEC_STATE_KIND_MAX];
#define REEXEC_STATE_MAGIC UINT32_C(0x7473626a) /* "jbst" */

struct reexec_state_conn { /* and the node as text */
	int fd, engine, full;
	uint32_t version, lists;
	int64_t hello_until;
};
struct reexec_state_end { /* and the frame */
	int asked;
	uint32_t reports;
};
struct reexec_state_orphan {
	int64_t pid, run, fence;
	int looks;
};
