/* SPDX-License-Identifier: Apache-2.0 */
/* The table of metrics: name, type, labels and help of each. */
#pragma once
#include "store/ops/op.h"
#include <stddef.h>
#include <stdint.h>

struct metrics;

enum metric {
	/* counted in the memory of this node */
	METRIC_ATTEMPTS,
	METRIC_RETRIES,
	METRIC_RUN_SECONDS,
	METRIC_LATENESS,
	METRIC_NOTICES,
	METRIC_SUBMISSIONS,
	METRIC_API_REQUESTS,
	METRIC_API_SECONDS,
	METRIC_STORE_COMMITS,
	METRIC_STORE_SECONDS,
	METRIC_STORE_BATCH,
	METRIC_STORE_BATCHES,
	METRIC_STORE_ROUND_TRIPS,
	METRIC_SPANS,
	METRIC_OTLP_REQUESTS,
	METRIC_ARCHIVE_UPLOADS,
	/* states of this node, read for a scrape */
	METRIC_BUILD,
	METRIC_NODE,
	METRIC_START_TIME,
	METRIC_LEADER,
	METRIC_LEASE,
	METRIC_RUN_LEASE,
	METRIC_SEGMENTS,
	METRIC_PEERS,
	METRIC_CLOCK_OFFSET,
	METRIC_CLOCK_TRUSTED,
	METRIC_OVERDUE,
	METRIC_STORE_UP,
	METRIC_STORE_BACKLOG,
	METRIC_STORE_FULL,
	METRIC_STORE_RISK,
	METRIC_SPAWNER_UP,
	METRIC_NET_UP,
	METRIC_WORKERS,
	METRIC_WORKERS_MAX,
	METRIC_SPOOL,
	METRIC_DRAINING,
	METRIC_MACHINE,
	METRIC_GROUP_PRESSURE,
	METRIC_SPANS_WAITING,
	/* of the cluster, from the store */
	METRIC_CLUSTER_JOBS,
	METRIC_CLUSTER_RUNS,
	METRIC_CLUSTER_SLOTS,
	METRIC_CLUSTER_DEAD,
	METRIC_CLUSTER_OLDEST,
	METRIC_CLUSTER_HELD,
	METRIC_CLUSTER_NOTICES,
	METRIC_CLUSTER_OUTPUT,
	METRIC_CLUSTER_NODES,
	METRIC_CLUSTER_HAS_LEADER,
	METRIC_CLUSTER_TERMS,
	METRIC_QUEUE_QUEUED,
	METRIC_QUEUE_ACTIVE,
	/* of selected jobs, from the store */
	METRIC_JOB_SUCCESS,
	METRIC_JOB_FAILURE,
	METRIC_JOB_MISSED,
	METRIC_JOB_NEXT,
	METRIC_JOB_DURATION,
	METRIC_MAX
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_INFO };
enum metric_scope { METRIC_OF_NODE, METRIC_OF_CLUSTER, METRIC_OF_JOB };

/* A label, or two labels of which only some combinations exist. */
struct metric_label {
	const char *name, *second; /* second is NULL: one label */
	/* The value of the first label (which = 0) or the second; NULL: there is no series for 'i'. */
	const char *(*value)(const struct metrics *m, size_t i, int which);
	size_t n; /* 0: as many as there are routes, queues or jobs */
};

struct metric_desc {
	const char *name;      /* without the suffix of the type */
	enum metric_type type;
	enum metric_scope scope;
	int64_t divisor;       /* of the stored number */
	const struct metric_label *labels[2]; /* NULL: none */
	const int64_t *buckets; /* upper bounds in stored numbers, ascending; the last is 0 */
	const char *unit;      /* NULL: none; the name ends with it */
	const char *help;
};
extern const struct metric_desc metric_table[METRIC_MAX];

/* Values of labels that are not names of states. */
enum metric_result { METRIC_OK, METRIC_FAILED, METRIC_RESULT_MAX };
enum metric_submission {
	METRIC_ACCEPTED,
	METRIC_CHECKED, /* a dry run */
	METRIC_INVALID,
	METRIC_DENIED,
	METRIC_CONFLICT,
	METRIC_LIMITED,
	METRIC_UNAVAILABLE,
	METRIC_SUBMISSION_MAX
};
enum metric_notice { METRIC_NOTICE_SENT, METRIC_NOTICE_RETRY, METRIC_NOTICE_FAILED, METRIC_NOTICE_MAX };
/* The operation of a batch: an enum op_kind, or one of these. */
enum metric_operation { METRIC_OP_MIXED = OP_KIND_MAX, METRIC_OP_NONE, METRIC_OP_MAX };
enum metric_span { METRIC_SPAN_EXPORTED, METRIC_SPAN_DROPPED, METRIC_SPAN_MAX };

size_t metric_bucket_count(const struct metric_desc *d);
/* The cells of one series: 1, or the buckets, the bucket without a bound, and the sum. */
size_t metric_width(const struct metric_desc *d);
size_t metric_label_count(const struct metric_desc *d, int which, size_t routes); /* 1 without the label */
