/* SPDX-License-Identifier: Apache-2.0 */
/* One row per metric. Output, manual page and tests follow this table. */
#include "daemon/metrics/metric_table.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/notice.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include "core/job/slot_outcome.h"
#include "daemon/metrics/metrics.h"
#include "store/ops/op.h"

/* ---- labels ---- */

#define WORDS(fn, ...) \
	static const char *const fn##_words[] = {__VA_ARGS__}; \
	static const char *fn(const struct metrics *m, size_t i, int which) \
	{ \
		(void)m; \
		(void)which; \
		return fn##_words[i]; \
	}
WORDS(result_of, "ok", "failed")
WORDS(submission_of, "accepted", "checked", "invalid", "denied", "conflict", "limited", "unavailable")
WORDS(notice_result_of, "sent", "retry", "failed")
WORDS(span_of, "exported", "dropped")
WORDS(code_of, "2xx", "3xx", "4xx", "5xx")
WORDS(resource_of, "cpu", "memory", "io")
WORDS(node_state_of, "alive", "expired", "draining")

#define NAMES(fn, call) \
	static const char *fn(const struct metrics *m, size_t i, int which) \
	{ \
		(void)m; \
		(void)which; \
		return call; \
	}
NAMES(operation_of, i < OP_KIND_MAX ? op_kind_name((enum op_kind)i) : i == METRIC_OP_MIXED ? "mixed" : "none")
NAMES(outcome_of, i == ATTEMPT_RUNNING ? NULL : attempt_outcome_name((enum attempt_outcome)i))
NAMES(job_state_of, job_state_name((enum job_state)i))
NAMES(run_state_of, run_state_name((enum run_state)i))
NAMES(notice_state_of, notice_state_name((enum notice_state)i))
NAMES(channel_of, policy_notify_channel_name((enum notify_channel)i))
NAMES(figure_of, policy_machine_figure_name((enum machine_figure)i))

static const char *route_of(const struct metrics *m, size_t i, int which)
{
	(void)which;
	return metrics_route(m, i);
}

/* Several rows of the table of outcomes can have the same class; the first one has the series. */
static const char *slot_of(const struct metrics *m, size_t i, int which)
{
	(void)m;
	if (i >= slot_outcomes_count || slot_outcome_index(slot_outcomes[i].state, slot_outcomes[i].reason) != i)
		return NULL;
	return which ? slot_outcomes[i].reason : run_state_name(slot_outcomes[i].state);
}

#define SLOT_ROWS_MAX 64 /* at least the rows of slot_outcomes[] */

static const struct metric_label
	by_result = {"result", NULL, result_of, METRIC_RESULT_MAX},
	by_submission = {"result", NULL, submission_of, METRIC_SUBMISSION_MAX},
	by_notice = {"result", NULL, notice_result_of, METRIC_NOTICE_MAX},
	by_span = {"result", NULL, span_of, METRIC_SPAN_MAX},
	by_code = {"code", NULL, code_of, 4},
	by_resource = {"resource", NULL, resource_of, 3},
	by_node_state = {"state", NULL, node_state_of, 3},
	by_operation = {"operation", NULL, operation_of, METRIC_OP_MAX},
	by_outcome = {"result", NULL, outcome_of, ATTEMPT_OUTCOME_MAX},
	by_job_state = {"state", NULL, job_state_of, JOB_STATE_MAX},
	by_run_state = {"state", NULL, run_state_of, RUN_STATE_MAX},
	by_notice_state = {"state", NULL, notice_state_of, NOTICE_STATE_MAX},
	by_channel = {"channel", NULL, channel_of, NOTIFY_CHANNEL_MAX},
	by_figure = {"figure", NULL, figure_of, MACHINE_FIGURE_MAX},
	by_route = {"route", NULL, route_of, 0},
	by_slot = {"outcome", "reason", slot_of, SLOT_ROWS_MAX};

/* ---- buckets ---- */

#define MS(n) ((n) * USEC_MSEC)
static const int64_t run_buckets[] = {MS(10), MS(100), USEC_SEC, 5 * USEC_SEC, 30 * USEC_SEC, USEC_MIN, 5 * USEC_MIN,
	15 * USEC_MIN, USEC_HOUR, 4 * USEC_HOUR, 12 * USEC_HOUR, USEC_DAY, 0};
static const int64_t lateness_buckets[] = {MS(5), MS(10), MS(25), MS(50), MS(100), MS(250), MS(500), USEC_SEC,
	5 * USEC_SEC, 15 * USEC_SEC, USEC_MIN, 5 * USEC_MIN, USEC_HOUR, 0};
static const int64_t api_buckets[] = {MS(1), MS(5), MS(25), MS(100), MS(500), 2500 * USEC_MSEC, 10 * USEC_SEC, 0};
static const int64_t commit_buckets[] = {500, MS(1), MS(2), MS(5), MS(10), MS(25), MS(50), MS(100), MS(250), MS(500),
	USEC_SEC, 5 * USEC_SEC, 0};
static const int64_t batch_buckets[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 0};

/* ---- the table ---- */

#define NODE_COUNTER(n, h, ...) {.name = n, .type = METRIC_COUNTER, .divisor = 1, .help = h, ##__VA_ARGS__}
#define NODE_GAUGE(n, h, ...) {.name = n, .type = METRIC_GAUGE, .divisor = 1, .help = h, ##__VA_ARGS__}
#define SECONDS(type_, n, h, ...) \
	{.name = n "_seconds", .type = type_, .divisor = USEC_SEC, .unit = "seconds", .help = h, ##__VA_ARGS__}
#define CLUSTER(type_, n, h, ...) {.name = n, .type = type_, .scope = METRIC_OF_CLUSTER, .divisor = 1, .help = h, ##__VA_ARGS__}
#define JOB(n, h) \
	{.name = n "_seconds", .type = METRIC_GAUGE, .scope = METRIC_OF_JOB, .divisor = USEC_SEC, .unit = "seconds", .help = h}
#define BY(...) .labels = {__VA_ARGS__}

const struct metric_desc metric_table[METRIC_MAX] = {
	[METRIC_ATTEMPTS] = NODE_COUNTER("jobsched_attempts", "attempts whose end this node recorded, by result", BY(&by_outcome)),
	[METRIC_RETRIES] = NODE_COUNTER("jobsched_retries", "ends after which this node queued the run for another attempt"),
	[METRIC_RUN_SECONDS] = SECONDS(METRIC_HISTOGRAM, "jobsched_attempt_duration",
		"time from start to end of attempts on this node", .buckets = run_buckets),
	[METRIC_LATENESS] = SECONDS(METRIC_HISTOGRAM, "jobsched_start_lateness",
		"time from when an attempt was due until its process started", .buckets = lateness_buckets),
	[METRIC_NOTICES] = NODE_COUNTER("jobsched_notices", "tries of this node to send a notice",
		BY(&by_channel, &by_notice)),
	[METRIC_SUBMISSIONS] = NODE_COUNTER("jobsched_submissions", "submissions of jobs to this node, single and bulk",
		BY(&by_submission)),
	[METRIC_API_REQUESTS] = NODE_COUNTER("jobsched_api_requests", "API requests that this node answered",
		BY(&by_route, &by_code)),
	[METRIC_API_SECONDS] = SECONDS(METRIC_HISTOGRAM, "jobsched_api_request_duration",
		"time from the head of an API request to the begin of its answer", .buckets = api_buckets, BY(&by_route)),
	[METRIC_STORE_COMMITS] = NODE_COUNTER("jobsched_store_commits", "transactions of this node's writer", BY(&by_result)),
	[METRIC_STORE_SECONDS] = SECONDS(METRIC_HISTOGRAM, "jobsched_store_commit_duration",
		"time that a transaction of this node's writer took, with its commit", .buckets = commit_buckets),
	[METRIC_STORE_BATCH] = {.name = "jobsched_store_batch_size", .type = METRIC_HISTOGRAM, .divisor = 1,
		.buckets = batch_buckets, .help = "operations in a transaction of this node's writer"},
	[METRIC_STORE_BATCHES] = NODE_COUNTER("jobsched_store_batches",
		"transactions of this node's writer on a server, by their operation; 'mixed': of several kinds, 'none': without one", BY(&by_operation)),
	[METRIC_STORE_ROUND_TRIPS] = NODE_COUNTER("jobsched_store_round_trips",
		"replies of the database server that these transactions waited for", BY(&by_operation)),
	[METRIC_SPANS] = NODE_COUNTER("jobsched_spans",
		"trace spans that were exported, or dropped because the queue was full or the receiver refused them", BY(&by_span)),
	[METRIC_OTLP_REQUESTS] = NODE_COUNTER("jobsched_otlp_requests", "requests to the trace receiver", BY(&by_result)),
	[METRIC_ARCHIVE_UPLOADS] = NODE_COUNTER("jobsched_archive_uploads",
		"objects that this node uploaded to the archive, or gave up after its retries", BY(&by_result)),
	[METRIC_BUILD] = {.name = "jobsched_build", .type = METRIC_INFO, .divisor = 1, .help = "version of the daemon"},
	[METRIC_NODE] = {.name = "jobsched_node", .type = METRIC_INFO, .divisor = 1, .help = "name of the node and kind of its store"},
	[METRIC_START_TIME] = SECONDS(METRIC_GAUGE, "jobsched_start_time", "when the daemon started, seconds since 1970"),
	[METRIC_LEADER] = NODE_GAUGE("jobsched_leader", "1 if this node leads under a valid lease"),
	[METRIC_LEASE] = SECONDS(METRIC_GAUGE, "jobsched_lease_remaining",
		"time until the lease of this node ends unless it is renewed; 0 if it is over"),
	[METRIC_RUN_LEASE] = SECONDS(METRIC_GAUGE, "jobsched_run_lease_remaining",
		"time until other nodes may give up the runs of this node"),
	[METRIC_SEGMENTS] = NODE_GAUGE("jobsched_segments", "segments of the schedule that this node plans, of 64"),
	[METRIC_PEERS] = NODE_GAUGE("jobsched_peers", "other live nodes that this node knows of"),
	[METRIC_CLOCK_OFFSET] = SECONDS(METRIC_GAUGE, "jobsched_clock_offset",
		"clock of the store minus clock of this node"),
	[METRIC_CLOCK_TRUSTED] = NODE_GAUGE("jobsched_clock_trusted", "1 if the clock of this node is trusted for planning"),
	[METRIC_OVERDUE] = SECONDS(METRIC_GAUGE, "jobsched_planning_overdue", "how long the first slot that is not planned has been due"),
	[METRIC_STORE_UP] = NODE_GAUGE("jobsched_store_up", "1 if the store answers"),
	[METRIC_STORE_BACKLOG] = NODE_GAUGE("jobsched_store_backlog", "operations that wait for a transaction or are in one"),
	[METRIC_STORE_RISK] = NODE_GAUGE("jobsched_store_at_risk",
		"1 if settings of the database server can lose acknowledged work at a crash or failover"),
	[METRIC_STORE_FULL] = NODE_GAUGE("jobsched_store_full", "1 if the disk of the store is full and submissions are refused"),
	[METRIC_SPAWNER_UP] = NODE_GAUGE("jobsched_spawner_up", "1 if the spawner is connected and can start runs"),
	[METRIC_NET_UP] = NODE_GAUGE("jobsched_net_up", "1 if jobsched-net is connected; in user mode it starts when it is needed"),
	[METRIC_WORKERS] = NODE_GAUGE("jobsched_workers", "runs that are claimed or running on this node"),
	[METRIC_WORKERS_MAX] = NODE_GAUGE("jobsched_workers_max", "limit of runs at the same time on this node"),
	[METRIC_SPOOL] = NODE_GAUGE("jobsched_unrecorded_ends", "ended runs that the store has not recorded yet"),
	[METRIC_DRAINING] = NODE_GAUGE("jobsched_draining", "1 if the node was told to start nothing new"),
	[METRIC_MACHINE] = {.name = "jobsched_machine_load", .type = METRIC_GAUGE, .divisor = 1000, BY(&by_figure),
		.help = "load average and pressure (percent) of the machine; NaN if the kernel has no figure"},
	[METRIC_GROUP_PRESSURE] = {.name = "jobsched_workers_pressure_ratio", .type = METRIC_GAUGE, .divisor = 100000, .unit = "ratio",
		BY(&by_resource),
		.help = "share of the last 10 s in which workers waited for a resource, from their control group; NaN if it has no figure"},
	[METRIC_SPANS_WAITING] = NODE_GAUGE("jobsched_spans_waiting", "trace spans that wait for export"),
	[METRIC_CLUSTER_JOBS] = CLUSTER(METRIC_GAUGE, "jobsched_cluster_jobs", "jobs in the store", BY(&by_job_state)),
	[METRIC_CLUSTER_RUNS] = CLUSTER(METRIC_GAUGE, "jobsched_cluster_runs", "runs in the store; history is deleted after keep-days",
		BY(&by_run_state)),
	[METRIC_CLUSTER_SLOTS] = CLUSTER(METRIC_COUNTER, "jobsched_cluster_slots",
		"slots that got their outcome, with the class of its reason", BY(&by_slot)),
	[METRIC_CLUSTER_DEAD] = CLUSTER(METRIC_GAUGE, "jobsched_cluster_dead_letters", "dead letters in the store"),
	[METRIC_CLUSTER_OLDEST] = {.name = "jobsched_cluster_oldest_waiting_seconds", .type = METRIC_GAUGE, .scope = METRIC_OF_CLUSTER,
		.divisor = USEC_SEC, .unit = "seconds",
		.help = "how long the first queued run has been due; 0 if none is; paused runs and those that wait for overlap do not count"},
	[METRIC_CLUSTER_HELD] = {.name = "jobsched_cluster_events_behind_seconds", .type = METRIC_GAUGE, .scope = METRIC_OF_CLUSTER,
		.divisor = USEC_SEC, .unit = "seconds",
		.help = "age of the first event that streams do not send yet, because an older transaction on the database server is open"},
	[METRIC_CLUSTER_NOTICES] = CLUSTER(METRIC_GAUGE, "jobsched_cluster_notices", "notices in the store", BY(&by_notice_state)),
	[METRIC_CLUSTER_OUTPUT] = {.name = "jobsched_cluster_output_bytes", .type = METRIC_GAUGE, .scope = METRIC_OF_CLUSTER,
		.divisor = 1, .unit = "bytes", .help = "kept output of runs"},
	[METRIC_CLUSTER_NODES] = CLUSTER(METRIC_GAUGE, "jobsched_cluster_nodes",
		"open nodes by their lease; a draining node is also alive or expired", BY(&by_node_state)),
	[METRIC_CLUSTER_HAS_LEADER] = CLUSTER(METRIC_GAUGE, "jobsched_cluster_has_leader", "1 if a node holds the leader lease"),
	[METRIC_CLUSTER_TERMS] = CLUSTER(METRIC_COUNTER, "jobsched_cluster_leader_terms", "terms of leaders so far"),
	[METRIC_QUEUE_QUEUED] = CLUSTER(METRIC_GAUGE, "jobsched_cluster_queue_queued", "queued runs by queue, planned ones included"),
	[METRIC_QUEUE_ACTIVE] = CLUSTER(METRIC_GAUGE, "jobsched_cluster_queue_running", "claimed and running runs by queue"),
	[METRIC_JOB_SUCCESS] = JOB("jobsched_job_last_success_timestamp", "when a run of the job last succeeded; 0: never"),
	[METRIC_JOB_FAILURE] = JOB("jobsched_job_last_failure_timestamp", "when a run of the job last failed or timed out; 0: never"),
	[METRIC_JOB_MISSED] = JOB("jobsched_job_last_missed_timestamp",
		"when a slot of the job was last decided not to run, or its run was lost; 0: never"),
	[METRIC_JOB_NEXT] = JOB("jobsched_job_next_slot_timestamp", "the next slot or retry of the job; 0: none"),
	[METRIC_JOB_DURATION] = JOB("jobsched_job_last_duration", "duration of the last attempt of the job that ended; 0: unknown"),
};

size_t metric_bucket_count(const struct metric_desc *d)
{
	size_t n = 0;

	while (d->buckets && d->buckets[n])
		n++;
	return n;
}

size_t metric_width(const struct metric_desc *d)
{
	return d->type == METRIC_HISTOGRAM ? metric_bucket_count(d) + 2 : 1;
}

size_t metric_label_count(const struct metric_desc *d, int which, size_t routes)
{
	const struct metric_label *l = d->labels[which];

	return !l ? 1 : l->n ? l->n : routes;
}
