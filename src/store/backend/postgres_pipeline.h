/* SPDX-License-Identifier: Apache-2.0 */
/* Sends statements without waiting for their replies; one round trip fetches all of them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct db_postgres;
struct err;

/* A statement that was sent and whose reply was not read. */
struct pg_queued {
	int query;        /* -1: a text without parameters */
	bool prepares;    /* a PREPARE was sent before it */
	bool keeps;       /* the rows are kept in the statement */
	size_t prefetch;  /* the rows are kept for a later query, see postgres_prefetch.h; 0: they are not */
	bool commits;     /* it is COMMIT */
	bool optional;    /* its error is ignored */
	const char *what; /* for error messages; static */
};

bool postgres_pipeline_text(struct db_postgres *d, int text, const char *what, struct err *e);
bool postgres_pipeline_query(struct db_postgres *d, int query, bool keeps, struct err *e);
bool postgres_pipeline_prefetch(struct db_postgres *d, int query, size_t number, struct err *e);
bool postgres_pipeline_pending(const struct db_postgres *d);

/*
 * Waits for the replies of all queued statements. The error is the one of the first statement that
 * failed; the server has skipped those behind it. ERR_UNREACHABLE: the session is closed.
 */
bool postgres_pipeline_flush(struct db_postgres *d, struct err *e);

/*
 * The same with COMMIT, and with the queued notification after it. ERR_UNCERTAIN: the connection was
 * lost after COMMIT was sent, and no error of an earlier statement was received.
 */
bool postgres_pipeline_commit(struct db_postgres *d, struct err *e);

void postgres_pipeline_drop(struct db_postgres *d); /* after the session was closed */
