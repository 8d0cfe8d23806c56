/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks a tar archive into a read-only tree, or copies another file there. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct quota;

#define UNPACK_ENTRIES_MAX 100000
#define UNPACK_DEPTH_MAX 32

struct unpack_source {
	int file;             /* read from its current offset; borrowed */
	int tree;             /* an empty directory; borrowed */
	const char *name;     /* of a file that is not a tar archive */
	int64_t limit;        /* bytes when unpacked */
	struct quota *quota;
};
/*
 * The tree has only directories, files, and links to targets inside of it. Its files are readable
 * by all users, executable if they are in the archive, and not writable. *ret_bytes is the
 * estimated disk space of the tree.
 */
bool unpack_tree(const struct unpack_source *p, int64_t *ret_bytes, struct err *e);

/* last component of its path, without characters that are special to a shell; caller frees */
char *unpack_file_name(const char *url);
/* the whole tree; 0, or -errno of the first file that could not be removed */
int unpack_remove(int dir, const char *name);
