/* SPDX-License-Identifier: Apache-2.0 */
/* The log's way into the journal, with the fields JOB, RUN and NODE. */
#pragma once

/* Call once, before any thread starts: to the journal when stderr is one, to stderr otherwise. */
void journal_open(const char *program, const char *node_name /* borrowed for ever */);
