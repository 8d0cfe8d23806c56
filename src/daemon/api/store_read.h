/* SPDX-License-Identifier: Apache-2.0 */
/* A request's question to the store: worked on by the reader's thread, answered on the loop. */
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

/* First member of what a route asks; the rest of that struct is its own. */
struct store_read {
	struct read_task task;
	struct ticket *ticket;
	bool (*run)(struct store *s, struct store_read *q, struct err *e); /* reader's thread: no request here */
	void (*then)(struct request *r, struct store_read *q); /* loop; NULL: answers 200 with 'out' */
	void (*failed)(struct request *r, struct store_read *q); /* loop; NULL: answers with 'err'. For what is answered already */
	void (*free)(struct store_read *q);                    /* frees the whole */
	int64_t scope;                                    /* of the request: a uid, or -1 */
	struct buf out;                                   /* JSON text */
	size_t reserve;                                   /* set by 'run': bytes that later parts of the answer may need */
	struct store_thread *store;                       /* borrowed */
	bool ok;
	struct err err;                                   /* when not ok: answered as it is */
};

void store_read_start(struct request *r, struct store_read *q /* moved; run, then, free are set */);
void store_read_start_long(struct request *r, struct store_read *q); /* the same for what takes long */

/* ---- for 'run' functions ---- */
/* A number or a name; ERR_NOT_FOUND says which name may have been meant. */
bool store_read_job(struct store *s, int64_t scope, const char *ref, struct job **ret, struct err *e);
bool store_read_run_id(const char *ref, int64_t *ret, struct err *e);
void store_read_write_job(struct buf *out, const struct job *j);
void store_read_write_run(struct buf *out, const struct run *r);
