/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts the directory of an artifact read-only for one worker. */
#pragma once
#include <stdbool.h>

struct err;

/*
 * Creates a detached mount that is read-only, nosuid and nodev. The daemon may run in another mount
 * namespace, whose mounts cannot be cloned here; then the directory is opened by its path, and used
 * if it is the same inode.
 */
bool artifact_mount_create(int dir, int *ret, struct err *e);
/* the path of the directory, for use without a mount; caller frees */
bool artifact_mount_path(int dir, char **ret, struct err *e);
bool artifact_mount_valid(int fd);                            /* is a directory */
