/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks a fetched file into a read-only tree: a tar archive, compressed or not, or the file itself. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct quota;

#define UNPACK_ENTRIES_MAX 100000
#define UNPACK_DEPTH_MAX 32

struct unpack_source {
	int file;             /* read from its current offset; borrowed, as is 'tree', an empty directory */
	int tree;
	const char *name;     /* of a file that is not a tar archive */
	int64_t limit;        /* bytes when unpacked */
	struct quota *quota;
};
/*
 * The tree has only directories, files and links that lead to places inside it. Its files are readable by all users,
 * executable if the archive says so, and writable by none. *ret_bytes is the disk space of the tree, as an estimate.
 */
bool unpack_tree(const struct unpack_source *p, int64_t *ret_bytes, struct err *e);

char *unpack_file_name(const char *url);     /* the last component of its path, without characters that are special to a shell */
int unpack_remove(int dir, const char *name); /* the whole tree; 0, or -errno of the first file that could not be removed */
