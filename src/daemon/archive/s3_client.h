/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes objects of the archive through jobsched-net, with retries. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/target/s3_url.h"
#include "net/s3_payload.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct metrics;
struct net_client;
struct s3_call;
struct s3_client;
struct sd_event;

struct s3_client_options {
	const struct clock *clock;
	struct net_client *net;  /* borrowed, as the rest */
	struct metrics *metrics; /* NULL: nothing is counted */
	struct s3_place place;
	const char *archive;     /* s3://BUCKET/PREFIX, checked */
};
struct s3_client *s3_client_new(struct sd_event *ev, const struct s3_client_options *o);
void s3_client_free(struct s3_client *c); /* unfinished calls fail */
AUTO_DEFINE(s3_client);

/* The answer; e.kind ERR_NONE: success. ERR_NOT_FOUND: there is no such object. Valid during the callback. */
struct s3_answer {
	struct err e;
	struct s3_result r;
};
typedef void s3_client_fn(const struct s3_answer *a, void *arg);

/* Names are below the prefix of the archive. The callback is never called from inside these functions. */
struct s3_upload {
	const char *name;
	const void *body;         /* NULL: the file */
	size_t len;
	int file;                 /* moved; -1: none */
	const struct s3_part *parts;
	size_t parts_n;
	const char *sha256;
};
struct s3_call *s3_client_put(struct s3_client *c, const struct s3_upload *u, s3_client_fn *fn, void *arg);
struct s3_call *s3_client_get(struct s3_client *c, const char *name, int64_t from, int64_t length, s3_client_fn *fn, void *arg);
/* Names after 'after' that begin with 'start', a key of the bucket per line; s3_client_name() removes the prefix. */
struct s3_call *s3_client_list(struct s3_client *c, const char *start, const char *after, int max, s3_client_fn *fn, void *arg);
const char *s3_client_name(const struct s3_client *c, const char *key); /* NULL: it is not below the prefix */
void s3_client_cancel(struct s3_call *call /* NULL is fine */);

bool s3_client_busy(const struct s3_client *c, struct err *ret); /* no further reads for clients; uploads are always possible */

/* Since when all calls have failed (wall clock), and why; 0: the last one succeeded. */
usec_t s3_client_failing(const struct s3_client *c, struct err *ret);
