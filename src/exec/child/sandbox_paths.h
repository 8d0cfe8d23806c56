/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of a profile, in the child. */
#pragma once
#include <stdbool.h>

#define SANDBOX_PATH_MAX 4096

/* %h becomes the owner's home. False: too long, or there is none. */
bool sandbox_path_expand(const char *path, const char *home, char out[SANDBOX_PATH_MAX]);
/*
 * Opens such a path (O_PATH). The owner can replace anything below %h, so no symbolic link is followed there: -ELOOP. Other paths are
 * the administrator's. A descriptor, or -errno.
 */
int sandbox_path_open(const char *path, const char *home);
bool sandbox_path_absent(int error); /* nothing is there, or the owner cannot reach it either */
