/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock, as far as it is prepared before there is a child. */
#pragma once

int sandbox_landlock_version(void);          /* 0: none that is of use */
int sandbox_landlock_processes(int version); /* a ruleset for FENCE_PROCESSES; -1: none */
