/* SPDX-License-Identifier: Apache-2.0 */
/* Shows what is to be approved, and asks. */
#pragma once
#include <stdbool.h>

struct ctl;
struct err;
struct exec_spec;

/*
 * Shows an order of which a part came from the daemon, with owner and command, and asks on the terminal unless --yes was given.
 * False (ERR_DENIED): it is not approved.
 */
bool approval_confirm(const struct ctl *c, const struct exec_spec *o, struct err *e);
