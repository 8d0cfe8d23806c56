/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the rows of queries that were sent before they are needed. */
#pragma once
#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

struct db;
struct db_postgres;
struct err;

/* A query that was sent, until a query with the same parameters takes its rows. */
struct pg_prefetched {
	int query;
	char *parameters; /* owned */
	PGresult *result; /* owned; NULL: not received yet */
	bool received;    /* its reply was read */
	bool used;        /* its rows were taken or discarded */
};

/* See db_ops. */
bool postgres_prefetch(struct db *db, int query, struct err *e);
void postgres_prefetch_drop(struct db *db);

void postgres_prefetch_keep(struct db_postgres *d, size_t number, PGresult *r); /* the reply to the query with this number, from 1 */
/*
 * Gives the statement the rows of a query that was sent with the same parameters; *ret: there was
 * one. False: the replies could not be read.
 */
bool postgres_prefetch_take(struct db_postgres *d, int query, bool *ret, struct err *e);
