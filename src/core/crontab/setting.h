/* SPDX-License-Identifier: Apache-2.0 */
/* Environment lines of a crontab; private to this directory. */
#pragma once
#include "core/crontab/reader.h"

/*
 * Adds the setting of the line at the cursor and moves behind it. False: it is not a setting, and
 * the cursor has not moved.
 */
bool setting_read(struct reader *r);
