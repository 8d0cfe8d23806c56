/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tree that nobody writes to out of a fetched file: a tar, compressed or not, or the file as itself. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

#define ARTIFACT_ENTRIES_MAX 100000
#define ARTIFACT_DEPTH_MAX 32

struct artifact_parcel {
	int file;             /* at its beginning; borrowed, as is 'tree', an empty directory */
	int tree;
	const char *name;     /* of a file that is no tar */
	int64_t limit;        /* bytes when unpacked */
	const atomic_bool *stop;
};
/*
 * Only directories, files and links inside the tree come out of it, owned by us, readable and if so marked executable
 * by everybody, writable by nobody. *ret_bytes is about what the disk has to hold.
 */
bool artifact_unpack(const struct artifact_parcel *p, int64_t *ret_bytes, struct err *e);

char *artifact_file_name(const char *url);     /* the last word of its path, without what a shell could misread */
int artifact_remove(int dir, const char *name); /* the whole tree; 0, or -errno of the first thing that stays */
