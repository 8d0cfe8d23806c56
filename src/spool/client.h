/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a request for user tables to jobsched-crontab. */
#pragma once
#include <stdbool.h>

struct err;
struct spool_reply;
struct spool_request;

/*
 * Root's requests are executed in this process, so root needs no service. The message of
 * ERR_UNREACHABLE names the command that starts the service. $JOBSCHED_CRONTAB_SOCKET replaces the
 * path of the socket, also for root.
 */
bool spool_client_call(const struct spool_request *r, struct spool_reply *ret, struct err *e);
