/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock rulesets that are prepared before the child exists. */
#pragma once

/* ABI version; 0: none, or a version that cannot be used */
int sandbox_landlock_version(void);
int sandbox_landlock_processes(int version); /* a ruleset for LANDLOCK_PROCESSES; -1: none */
