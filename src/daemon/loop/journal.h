/* SPDX-License-Identifier: Apache-2.0 */
/* Sends log lines to the systemd journal, with the fields JOB, RUN and NODE. */
#pragma once

/* Call once, before any thread starts. Logs to standard error if that is not connected to the journal. */
void journal_open(const char *program, const char *node_name /* borrowed for ever */);
