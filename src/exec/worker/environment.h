/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a worker, built from nothing. */
/*
 * Later variables replace earlier ones: those of the user, of the PAM session, of the run, of the
 * job, and those that identify the run.
 */
#pragma once
#include "base/text.h"
#include "exec/proto/payload.h"
#include <stdint.h>

struct frame_start;
struct user;

struct environment {
	struct strv owned;  /* variables that are made here */
	/* owned array; its texts are borrowed from 'owned', the session and the payload */
	char **envp;
	size_t n;
};

struct environment_source {
	const struct user *user;
	const struct payload *payload;
	const struct frame_start *start;
	const char *lang;    /* NULL: C.UTF-8 */
	const char *artifact; /* its directory; NULL: none */
	const char *spawner; /* its id */
	int notify_fd;       /* descriptor for signs; -1: none */
	const char *notify_socket; /* path of the notify socket; NULL: none */
	int results_fd;      /* descriptor of the results; -1: none */
	int state_fd;        /* descriptor of the directory that the attempts share; -1: none */
	int gate_fd;         /* descriptor for the exit code of the gate; -1: none */
	const struct strv *session; /* NAME=value of the PAM session; NULL: none */
};
void environment_build(struct environment *v, const struct environment_source *from);
void environment_done(struct environment *v);
const char *environment_get(const struct environment *v, const char *name); /* NULL: not set */
