/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of a job as a tree of text. */
#pragma once
#include <jansson.h>

struct buf;

/* Writes the answer of GET /v1/jobs/{job}/graph: each job once, with a reference where it appears again. */
void graph_write(const json_t *graph, struct buf *out);
