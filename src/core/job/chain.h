/* SPDX-License-Identifier: Apache-2.0 */
/* Links of a job to the jobs that it runs after. */
#pragma once
#include "core/job/run.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct strv;

enum chain_when { CHAIN_SUCCESS, CHAIN_FAILURE, CHAIN_ANY, CHAIN_EXIT };
enum chain_mode { CHAIN_ALL_OF, CHAIN_ANY_OF, CHAIN_MODE_MAX };
#define CHAIN_LINKS_MAX 32 /* of one job */
#define CHAIN_PARENT_MAX 129

/* JOB[:success|failure|any|exit=N]. JOB is a name or a number. */
struct chain_link {
	char parent[CHAIN_PARENT_MAX];
	enum chain_when when;
	int64_t code; /* of CHAIN_EXIT */
};
bool chain_link_parse(const char *text, struct chain_link *ret, struct err *e);
/*
 * Whether the end of a run of the parent satisfies the link. A run that was cancelled, skipped or
 * expired satisfies no link.
 */
bool chain_link_holds(const struct chain_link *l, enum run_state state, int64_t exit_code);
/*
 * Appends "after job 'a' succeeds, and job 'b' fails", with "or" for CHAIN_ANY_OF. After four
 * links only the number of the others is given.
 */
void chain_explain(const struct strv *links, int64_t mode, struct buf *out);
