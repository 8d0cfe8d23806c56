/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the crontabs of the machine; a short-lived process reads them after each change. */
#pragma once
#include "base/clock.h"
#include "exec/proto/epoll_source.h"
#include "exec/spawner/spawner_conf.h"
#include "exec/spawner/warrant_key.h"
#include <stdbool.h>
#include <sys/types.h>

struct table_list;
struct workers;

/* The reading process gets this on descriptor 0. The paths are in spawner.conf, which root owns. */
struct table_request {
	uint32_t magic, policy;   /* enum warrant_policy */
	struct table_conf conf;
	struct warrant_key key;
};
#define TABLE_REQUEST_MAGIC UINT32_C(0x7172746a) /* "jtrq" */

struct table_reader {
	int ep;                         /* borrowed, as are the next three */
	struct workers *workers;        /* reaps the process */
	const struct spawner_conf *conf; /* NULL: user mode, no tables are read */
	const struct warrant_key *key;
	bool wanted;                    /* the daemon has asked for tables */
	bool changed;                   /* 'list' was not sent to the daemon yet */
	struct epoll_source inotify, exit, cron; /* the last two are pidfds: of the process, of another cron daemon */
	int writing;                    /* memfd of the process; -1: none runs */
	int list;                       /* owned: sealed memfd with the newest list; -1: none */
	unsigned char digest[32];       /* of 'list' */
	int own_watches;                /* the highest inotify watch of a directory that has only tables */
	usec_t read_at;                 /* CLOCK_BOOTTIME of the next read; 0: none */
	usec_t kill_at;                 /* of the running process */
};
#define TABLE_READER_NONE {.inotify.fd = -1, .exit.fd = -1, .cron.fd = -1, .writing = -1, .list = -1}
void table_reader_done(struct table_reader *t);
void table_reader_want(struct table_reader *t, bool on); /* on: the newest list is sent again */
void table_reader_run_due(struct table_reader *t, usec_t now);
usec_t table_reader_next_due(const struct table_reader *t);

/* ---- the process ---- */
int table_reader_main(void); /* request from descriptor 0, list to descriptor 1 */
void table_cron_find(struct table_list *l);
struct table_file;
/* Approves the lines of a table of root that need it. */
void table_warrants_make(struct table_file *f, const struct table_request *r);
