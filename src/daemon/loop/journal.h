/* SPDX-License-Identifier: Apache-2.0 */
/* Sends log lines with structured fields to the systemd journal. */
#pragma once

/*
 * Call once, before any thread starts. Logs to standard error if that is not connected to the
 * journal.
 */
void journal_open(const char *program, const char *node_name /* borrowed for ever */);
