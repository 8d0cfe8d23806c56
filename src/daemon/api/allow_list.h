/* SPDX-License-Identifier: Apache-2.0 */
/* User lists like cron.allow or cron.deny. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct allow_list;
struct err;

/* The paths are copied; the files are read when a user is checked. */
struct allow_list *allow_list_new(const char *allow_path, const char *deny_path);
void allow_list_free(struct allow_list *a);
AUTO_DEFINE(allow_list);

/*
 * If the allow file exists, only the users in it are permitted; otherwise all users except those in
 * the deny file. If a file exists but cannot be read, no user is permitted: ERR_DENIED names the
 * file and the reason. Not called for root.
 */
bool allow_list_permits(struct allow_list *a, const char *user, struct err *e);
