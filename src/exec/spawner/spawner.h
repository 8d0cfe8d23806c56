/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner: one engine at a time, its workers, and a loop between them. */
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
	int lock;            /* borrowed: that of the runtime directory */
	struct cgroups *groups; /* borrowed */
	const char *id;      /* of this life; borrowed */
	const struct spawner_conf *conf; /* of the system's spawner, which is root's; NULL: of one user; borrowed */
	const char *artifact_path; /* borrowed: a directory that workers may find theirs at; NULL: none */
	uid_t engine;        /* who may ask, beside root */
	const struct warrant_key *key; /* NULL: none; borrowed */
	int asks;            /* a listening socket for whoever wants a warrant; -1: none; borrowed */
	usec_t linger;       /* leave after that long with nothing to do; 0: never */
	const struct reexec *program; /* borrowed: what SIGHUP makes us again */
	const struct reexec_state *resume;   /* borrowed; NULL: a new life */
};

/* Serves until there is nothing to do or it is told to end (SIGTERM, SIGINT). All signals are blocked by the caller. */
bool spawner_run(const struct spawner_options *o, struct err *e);
