/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the jobs that a job runs after and those that run after it. */
#pragma once
#include "store/lists.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct store;

#define CHAIN_GRAPH_JOBS_MAX 200

struct chain_graph_link {
	int64_t parent;  /* 0: no such job any more */
	int64_t child;
	char *link;      /* owned; text of the definition, see core/job/chain.h */
};
struct chain_graph {
	struct job_list jobs; /* the nearest ones, at most CHAIN_GRAPH_JOBS_MAX */
	struct chain_graph_link *v; /* owned; between these jobs */
	size_t n;
	bool more;            /* there are more jobs */
};
void chain_graph_done(struct chain_graph *g);
/* All ancestors and all descendants of a job, of the same owner. */
bool chain_graph_read(struct store *s, int64_t job, struct chain_graph *ret, struct err *e);
