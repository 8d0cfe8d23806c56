/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of container mode: counters of each entry, served over HTTP for Prometheus. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct container_metrics;
struct err;
struct sd_event;

struct container_metrics *container_metrics_new(void);
void container_metrics_free(struct container_metrics *m);
AUTO_DEFINE(container_metrics);

void container_metrics_started(struct container_metrics *m, const char *job, size_t line, usec_t now);
void container_metrics_ended(struct container_metrics *m, const char *job, bool succeeded, usec_t took, usec_t now);
void container_metrics_set_entries(struct container_metrics *m, size_t entries);

/*
 * Serves GET /metrics at HOST:PORT, :PORT or [HOST]:PORT; HOST is numeric. *ret_address is the address in use, which
 * the caller frees. False: the address cannot be used.
 */
bool container_metrics_listen(struct container_metrics *m, struct sd_event *ev, const char *address, char **ret_address,
	struct err *e);
