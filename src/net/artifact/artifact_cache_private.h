/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the files of the artifact cache. */
/*
 * The directory of the cache has an entry KEY per artifact, with the file 'size' and either 'tree'
 * or, with private copies, 'file'. An entry run-RUN-FENCE is the private copy of one run. Names
 * that begin with a dot are directories that are being made (.new-) or removed (.old-). Entries
 * that a request uses count against the budget and are never evicted. Disk space for new entries is
 * granted to the children in steps.
 */
#pragma once
#include "base/clock.h"
#include "net/artifact/artifact_cache.h"
#include "net/net_frame.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct request;
struct sd_event;
struct sd_event_source;

struct artifact_cache {
	struct sd_event *ev; /* borrowed */
	struct artifact_cache_options o;
	int dir;        /* owned */
	int64_t budget;
	bool synced;
	struct artifact_task *tasks; /* in the order of arrival */
	pid_t remover;  /* 0: none */
	int remover_control;
	struct sd_event_source *remover_source;
	bool remove_again;
};

/* ---- artifact_entries.c ---- */
struct artifact_entry {
	char *name; /* owned */
	int64_t bytes;
	usec_t used_at;
	bool in_use;
};

/* without the name */
bool artifact_entry_read(
	const struct artifact_cache *c, const char *name, struct artifact_entry *ret);
/*
 * All entries, least recently used first. An entry that cannot be read comes first, with a size of
 * 0.
 */
size_t artifact_entries_list(const struct artifact_cache *c, struct artifact_entry **ret);
void artifact_entries_free(struct artifact_entry *v, size_t n);
void artifact_entry_remove(struct artifact_cache *c, const char *name);
void artifact_entries_close(struct artifact_cache *c); /* ends the removing child */
#define ARTIFACT_COPY_NAME 64
/* of its private copy */
void artifact_entry_copy_name(const struct request *r, char out[ARTIFACT_COPY_NAME]);
/* ends it with the tree of an entry */
void artifact_entry_answer(struct request *r, const struct artifact_cache *c, const char *name);

/* ---- artifact_budget.c ---- */
/*
 * Evicts unused entries until 'more' bytes fit. Returns the bytes that are free then, which may be
 * fewer, or negative.
 */
int64_t artifact_budget_evict(struct artifact_cache *c, int64_t more);
/* the answer to a child that needs so many bytes in all */
int64_t artifact_budget_grant(struct artifact_task *t, int64_t needed);

/* ---- artifact_tasks.c ---- */
enum artifact_task_stage { TASK_WAITING, TASK_FETCHING, TASK_UNPACKING };

struct artifact_task {
	struct artifact_cache *cache; /* borrowed */
	/* borrowed; makes the private copy of this request; NULL: makes the entry 'key' */
	struct request *copy_for;
	char key[NET_KEY_MAX];
	char *url, *sha256;           /* owned */
	char *s3_url, *s3_region;     /* owned; of a 's3:' artifact; NULL otherwise */
	bool asking;                  /* for credentials, inside the call that asks */
	struct err *asking_error;     /* borrowed, of that call */
	int64_t uid, limit;
	usec_t timeout;
	enum artifact_task_stage stage;
	char name[64];                /* of its directory; empty: it has become an entry */
	int dir;                      /* owned; -1: none */
	/* of the fetched file, while the tree is unpacked beside it */
	int64_t file_bytes;
	int64_t granted;
	pid_t pid;                    /* of its child; 0: none */
	int control;                  /* owned; socket to its child */
	struct sd_event_source *source, *timer;
	struct artifact_task *next;
};

void artifact_task_add(struct artifact_cache *c, const struct request *r,
	struct request *copy_for /* NULL: for the entry */);
void artifact_tasks_start(struct artifact_cache *c); /* starts waiting tasks, within the limits */
/* the request waits for it */
bool artifact_task_serves(const struct artifact_task *t, const struct request *r);
void artifact_task_free(struct artifact_task *t);
