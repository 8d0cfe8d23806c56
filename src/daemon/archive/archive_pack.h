/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares expired history for the archive. Runs on the thread for long tasks. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "base/sha256.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct kept_output;
struct prune_candidates;
struct store;

struct archive_rules {
	const char *dir;       /* local directory; NULL: S3-compatible storage */
	const char *file;      /* name of the file for this pass, in the directory */
	bool outputs;          /* the output of attempts is archived, too */
	int output_dir;        /* descriptor of the output directory of the spawner */
	bool leads;            /* this node archives the runs whose output is on no live node */
	const char *node_name;
};

/* An object to be uploaded. */
struct archive_item {
	char *name;            /* owned; see archive_names.h */
	char *body;            /* owned; NULL: the output file of this attempt */
	size_t len;
	int64_t run, attempt;
	char sha256[SHA256_HEX];
};
struct archive_batch {
	struct archive_item *v; /* owned */
	size_t n;
	size_t left;            /* runs that another node archives, or that cannot be archived */
	char warning[256];      /* why a run cannot be archived; empty: none */
};
void archive_batch_done(struct archive_batch *b);

/*
 * Removes from the list the runs that this node does not archive. Writes the others to the local directory, or adds them to the
 * batch. With a local directory the list may be deleted when it returns; otherwise when the batch was uploaded.
 */
bool archive_pack(struct store *s, const struct archive_rules *r, struct prune_candidates *list, struct archive_batch *ret,
	struct err *e);
/* The same for output that is deleted because of its size. *n is the number of elements that are left. */
bool archive_pack_outputs(struct store *s, const struct archive_rules *r, struct kept_output *v, size_t *n,
	struct archive_batch *ret, struct err *e);
