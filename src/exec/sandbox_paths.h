/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of a profile, in the child. */
#pragma once
#include <stdbool.h>

#define SANDBOX_PATH_MAX 4096

/* %h becomes the owner's home. False: too long, or there is none. */
bool sandbox_path(const char *path, const char *home, char out[SANDBOX_PATH_MAX]);
