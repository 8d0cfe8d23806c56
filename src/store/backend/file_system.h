/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a file system can hold a SQLite store. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;

enum file_system_verdict {
	FILE_SYSTEM_LOCAL,
	FILE_SYSTEM_UNKNOWN, /* shared with the host of a virtual machine: usable by one machine at a time */
	FILE_SYSTEM_REMOTE,
};
/*
 * From the type that statfs(2) reports and, for FUSE, the type in /proc/self/mountinfo (NULL:
 * unknown).
 */
enum file_system_verdict file_system_judge(uint64_t magic, const char *fstype);

/*
 * The verdict on the directory of 'path', and the name of the type (caller frees). ERR_REFUSED:
 * remote.
 */
bool file_system_check(const char *path, enum file_system_verdict *ret, char **ret_type, struct err *e);
