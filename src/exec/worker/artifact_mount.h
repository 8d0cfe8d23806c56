/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of the engine's, shown to one worker: as a mount of its own, or where it is. */
#pragma once
#include <stdbool.h>

struct err;

/*
 * A mount that is nowhere yet: read-only, without devices and setuid. The engine may live in another mount namespace,
 * whose mounts cannot be used here; then the directory is looked for by its path and taken if it is the very same.
 */
bool artifact_mount_create(int dir, int *ret, struct err *e);
bool artifact_mount_path(int dir, char **ret, struct err *e); /* for who can go there himself; caller frees */
bool artifact_mount_valid(int fd);                            /* a directory */
