/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of container mode: starts commands, logs their output line by line, forwards signals. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct container_log;
struct container_metrics;
struct err;
struct sd_event;

struct container_processes;

/* 'arg' is that of the set; called when no process is left. */
typedef void container_idle_fn(void *arg);

struct container_processes *container_processes_new(struct sd_event *ev, const struct container_log *log,
	struct container_metrics *metrics, container_idle_fn *idle, void *arg);
void container_processes_free(struct container_processes *l);
AUTO_DEFINE(container_processes);

/* The process to start. All texts are copied. */
struct container_start {
	const char *job;      /* its name */
	size_t line;
	const char *shell, *command;
	const char *input;    /* standard input; NULL: none */
	const char *directory;
	char *const *env;
};
/* False: the process could not be created. */
bool container_process_start(struct container_processes *l, const struct container_start *s, struct err *e);

size_t container_processes_running(const struct container_processes *l, const char *job /* NULL: all */);
void container_processes_signal(struct container_processes *l, int signal); /* to each command and its descendants */
/* After SIGCHLD: collects all ended children, also those that commands left behind. */
void container_processes_reap(struct container_processes *l);
