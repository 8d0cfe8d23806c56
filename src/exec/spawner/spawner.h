/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner's main loop, with its options. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <sys/types.h>

struct cgroups;
struct err;
struct reexec;
struct reexec_state;
struct spawner_conf;
struct warrant_key;

struct spawner_options {
	int listen;          /* a listening SOCK_SEQPACKET socket; borrowed */
	int output_dir;      /* borrowed */
	int lock;            /* borrowed; the lock file of the state directory */
	struct cgroups *groups; /* borrowed */
	const char *id;      /* of the spawner, new with each start; borrowed */
	const struct spawner_conf *conf; /* system mode; NULL: user mode; borrowed */
	/* Mount point for the artifact of a worker; NULL: none; borrowed. */
	const char *artifact_path;
	const char *notify_path; /* directory for the notify sockets of workers; borrowed */
	uid_t daemon;        /* uid that may connect, besides root */
	const struct warrant_key *key; /* NULL: none; borrowed */
	int warrant_listen;            /* the listening warrant socket; -1: none; borrowed */
	usec_t linger;       /* exit after this idle time; 0: never */
	const struct reexec *program; /* executed again on SIGHUP; borrowed */
	/* The state after a re-exec; NULL: a new spawner; borrowed. */
	const struct reexec_state *resume;
};

/*
 * Runs until the spawner is idle for 'linger' or gets SIGTERM or SIGINT. The caller has blocked all
 * signals.
 */
bool spawner_run(const struct spawner_options *o, struct err *e);
