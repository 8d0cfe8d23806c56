/* SPDX-License-Identifier: Apache-2.0 */
/* State passed to the new program when the spawner re-executes: a sealed memory file. */
/*
 * Format: a magic number and the version, then records. A record has its kind and length (32 bits
 * each), the numbers of this kind in the order of its table (64 bits each), and the remaining bytes
 * as one text. The last record is of kind REEXEC_STATE_LAST. Descriptors keep their numbers over
 * exec(). The new program applies nothing unless all records are valid.
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

#define REEXEC_STATE_VERSION 1        /* the version that this program writes */
#define REEXEC_STATE_VERSION_OLDEST 1 /* the oldest version that it reads */
#define REEXEC_STATE_MAX (256 << 20)

/* Values that belong to no worker or connection. */
struct reexec_state_head {
	int listen, output_dir, lock;
	int groups;                       /* directory of the control groups; -1: none */
	int64_t groups_next;
	/* RLIMIT_NOFILE for workers; the spawner has raised its own. */
	int64_t nofile_soft, nofile_hard;
	int64_t lease_end, lease_kill;
	int stopping;
	int64_t stop_until, idle_since;
	char id[64];
};

struct reexec_state_fds { /* descriptors that must stay open over exec() */
	int *v;
	size_t n, cap;
};

struct reexec_state; /* read and validated, not applied */

/*
 * Returns a memfd or -errno. *ret gets all descriptors that the state names, and the memfd itself.
 */
int reexec_state_save(const struct reexec_state_head *h, const struct conns *cs, struct workers *ws,
	struct reexec_state_fds *ret);
void reexec_state_fds_done(struct reexec_state_fds *f);
/* Clears or sets FD_CLOEXEC. */
void reexec_state_fds_inherit(const struct reexec_state_fds *f, bool on);

/* Validates the state and sets FD_CLOEXEC on the descriptors that it names. */
bool reexec_state_parse(char *data /* moved */, size_t len, struct reexec_state **ret,
	struct err *e);
/* Reads a memfd, parses it, and closes all descriptors that the state does not name. */
bool reexec_state_open(int fd, struct reexec_state **ret, struct err *e);
const struct reexec_state_head *reexec_state_head(const struct reexec_state *s);
bool reexec_state_apply(const struct reexec_state *s, struct conns *cs, struct workers *ws,
	struct err *e);
void reexec_state_free(struct reexec_state *s);

/* ---- private to reexec_state*.c ---- */
enum reexec_state_kind { REEXEC_STATE_HEAD = 1, REEXEC_STATE_CONN, REEXEC_STATE_WORKER,
	REEXEC_STATE_ENDED, REEXEC_STATE_ORPHAN, REEXEC_STATE_LAST,
	REEXEC_STATE_PROGRESS, REEXEC_STATE_RESULT, REEXEC_STATE_KIND_MAX };

struct reexec_state_field {
	const char *name;
	size_t offset, size; /* of the integer in the structure of its kind */
	int64_t min, max;
	bool fd;             /* a descriptor; -1 is valid if min is -1 */
};

struct reexec_state_table {
	const char *name;
	const struct reexec_state_field *fields;
	size_t n;
	size_t text_max;
};
extern const struct reexec_state_table reexec_state_tables[REEXEC_STATE_KIND_MAX];
#define REEXEC_STATE_MAGIC UINT32_C(0x7473626a) /* "jbst" */

struct reexec_state_conn { /* text: name of the node */
	int fd, daemon, full;
	uint32_t version, lists;
	int64_t hello_until;
};
struct reexec_state_end { /* text: the ended frame */
	int asked;
	uint32_t reports;
};
struct reexec_state_progress { /* of a worker whose record precedes; text: that of the progress */
	int64_t run, fence;
	int percent;
	int64_t at;
};
struct reexec_state_result { /* of a worker or end whose record precedes; text: its results */
	int64_t run, fence;
};
