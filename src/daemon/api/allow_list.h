/* SPDX-License-Identifier: Apache-2.0 */
/* The site's lists of who may start anything here, as cron.allow and cron.deny. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct allow_list;
struct err;

struct allow_list *allow_list_new(const char *allow_path, const char *deny_path); /* copied; looked at on use */
void allow_list_free(struct allow_list *a);
AUTO_DEFINE(allow_list);

/*
 * If there is a list of the allowed, who stands on it; else who does not stand on the other. A list that is there and
 * cannot be read denies everybody: ERR_DENIED says which file and why. Root is never asked about.
 */
bool allow_list_permits(struct allow_list *a, const char *user, struct err *e);
