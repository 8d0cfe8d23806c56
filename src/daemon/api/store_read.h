/* SPDX-License-Identifier: Apache-2.0 */
/* Store read for a request: runs on the reader thread. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "daemon/loop/store_thread.h"
#include <stdbool.h>
#include <stdint.h>

struct job;
struct request;
struct run;
struct ticket;

/* First member of the read of a route, which adds its own members. */
struct store_read {
	struct read_task task;
	struct ticket *ticket;
	/* on the reader thread, without access to the request */
	bool (*run)(struct store *s, struct store_read *q, struct err *e);
	/* on the loop; NULL: responds 200 with 'out' */
	void (*then)(struct request *r, struct store_read *q);
	/* on the loop; NULL: responds with 'err'. Needed if the response has already begun */
	void (*failed)(struct request *r, struct store_read *q);
	void (*free)(struct store_read *q);                    /* frees the whole struct */
	int64_t scope;                                    /* of the request, see access_scope() */
	struct buf out;                                   /* JSON text */
	/* set by 'run': memory that the rest of the response may need */
	size_t reserve;
	struct store_thread *store;                       /* borrowed */
	bool ok;
	struct err err;                                   /* if not ok */
};

void store_read_start(struct request *r,
	struct store_read *q /* moved; run, then and free are set */);
/* For a read that takes seconds: uses its own thread. */
void store_read_start_long(struct request *r, struct store_read *q);

/* ---- functions for 'run' ---- */
/* 'ref' is a number or a name; ERR_NOT_FOUND suggests a similar name. */
bool store_read_job(struct store *s, int64_t scope, const char *ref, struct job **ret,
	struct err *e);
bool store_read_run_id(const char *ref, int64_t *ret, struct err *e);
void store_read_write_job(struct buf *out, const struct job *j);
void store_read_write_run(struct buf *out, const struct run *r);
