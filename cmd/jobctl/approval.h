/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the user to approve what a job starts. */
#pragma once
#include <stdbool.h>

struct ctl;
struct err;
struct exec_spec;

/*
 * Shows owner, command and settings, and asks on the terminal unless --yes was given. Needed where
 * a part of them came from the daemon and was not typed by the user. False (ERR_DENIED): not
 * approved.
 */
bool approval_confirm(const struct ctl *c, const struct exec_spec *o, struct err *e);
