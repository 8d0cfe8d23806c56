/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the metrics: counting, negotiation, both formats. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/job/run.h"
#include "core/job/slot_outcome.h"
#include "daemon/metrics/metrics.h"
#include "daemon/metrics/metrics_text.h"
#include "store/read/metric_counts.h"
#include "unit/unit.h"
#include <pthread.h>
#include <string.h>

#define ADDS 20000

static const char *const routes_of_test[] = {"GET /a", "other"};

static struct metrics *metrics_of_test(void)
{
	return metrics_new(routes_of_test, ELEMENTS(routes_of_test));
}

static char *text_of(const struct metrics *m, enum metrics_format f, const struct metric_counts *c)
{
	AUTO(metrics_snapshot) *s = metrics_snapshot_new(m);
	struct buf out = {};

	metrics_text_write(&out, f, s, c, &(struct metrics_text_labels){"1.0", "n\"1\\", "sqlite"});
	return buf_steal(&out);
}

static void has_line(const char *text, const char *line)
{
	AUTO_TEXT whole = xprintf("\n%s\n", line);

	if (!strstr(text, whole))
		fail_msg("no line '%s'", line);
}

static void the_accept_header_selects_the_format(void **state)
{
	static const struct {
		const char *accept;
		enum metrics_format format;
	} cases[] = {
		{NULL, METRICS_TEXT},
		{"", METRICS_TEXT},
		{"*/*", METRICS_TEXT},
		{"text/plain", METRICS_TEXT},
		{"application/json", METRICS_TEXT},
		{"application/openmetrics-text", METRICS_OPENMETRICS},
		{"Application/OpenMetrics-Text ; version=1.0.0", METRICS_OPENMETRICS},
		{"application/openmetrics-text;version=0.0.1", METRICS_OPENMETRICS},
		{"application/openmetrics-text;version=2.0.0", METRICS_TEXT},
		{"application/openmetrics-text;q=0", METRICS_TEXT},
		{"application/openmetrics-text;q=0.2,text/plain;q=0.3", METRICS_TEXT},
		{"text/plain;q=0.5,application/openmetrics-text;q=0.5", METRICS_OPENMETRICS},
		{"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
		 "text/plain;version=0.0.4;q=0.3,*/*;q=0.2", METRICS_OPENMETRICS},
		{"application/openmetrics-text;q=2", METRICS_TEXT},
		{"application/openmetrics-text;q=0.1.1", METRICS_TEXT},
		{";,;q=,,application/openmetrics-text;;;q=1", METRICS_OPENMETRICS},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++)
		if (metrics_text_negotiate(cases[i].accept) != cases[i].format)
			fail_msg("'%s'", cases[i].accept);
}

static void every_series_exists_before_anything_was_counted(void **state)
{
	AUTO(metrics) *m = metrics_of_test();
	struct metric_counts none = {.slots = xcalloc(slot_outcomes_count, sizeof(int64_t))};
	AUTO_TEXT text = text_of(m, METRICS_TEXT, &none);

	(void)state;
	has_line(text, "jobsched_attempts_total{result=\"succeeded\"} 0");
	has_line(text, "jobsched_api_requests_total{route=\"GET /a\",code=\"5xx\"} 0");
	has_line(text, "jobsched_api_requests_total{route=\"other\",code=\"4xx\"} 0");
	has_line(text, "jobsched_cluster_slots_total{outcome=\"skipped\",reason=\"missed\"} 0");
	has_line(text, "jobsched_attempt_duration_seconds_bucket{le=\"+Inf\"} 0");
	has_line(text, "jobsched_cluster_dead_letters 0");
	assert_null(strstr(text, "result=\"running\"")); /* not a result */
	metric_counts_done(&none);
}

static void counters_and_histograms_show_what_was_counted(void **state)
{
	AUTO(metrics) *m = metrics_of_test();
	AUTO_TEXT text = NULL;

	(void)state;
	metrics_add(m, METRIC_ATTEMPTS, ATTEMPT_FAILED, 0, 2);
	metrics_add(m, METRIC_API_REQUESTS, 0, 2, 3);
	metrics_add(m, METRIC_API_REQUESTS, 99, 0, 1); /* no such route */
	metrics_add(m, METRIC_API_REQUESTS, 0, 99, 1);
	metrics_add(NULL, METRIC_RETRIES, 0, 0, 1);
	metrics_observe(m, METRIC_LATENESS, 0, 5 * USEC_MSEC); /* a bound is inclusive */
	metrics_observe(m, METRIC_LATENESS, 0, 5 * USEC_MSEC + 1);
	metrics_observe(m, METRIC_LATENESS, 0, USEC_DAY);
	metrics_observe(m, METRIC_LATENESS, 0, -5);
	text = text_of(m, METRICS_TEXT, NULL);
	has_line(text, "jobsched_attempts_total{result=\"failed\"} 2");
	has_line(text, "jobsched_api_requests_total{route=\"GET /a\",code=\"4xx\"} 3");
	has_line(text, "jobsched_start_lateness_seconds_bucket{le=\"0.005\"} 2");
	has_line(text, "jobsched_start_lateness_seconds_bucket{le=\"0.01\"} 3");
	has_line(text, "jobsched_start_lateness_seconds_bucket{le=\"3600.0\"} 3");
	has_line(text, "jobsched_start_lateness_seconds_bucket{le=\"+Inf\"} 4");
	has_line(text, "jobsched_start_lateness_seconds_sum 86400.010001");
	has_line(text, "jobsched_start_lateness_seconds_count 4");
	assert_int_equal(metrics_get(m, METRIC_ATTEMPTS, ATTEMPT_FAILED, 0), 2);
	assert_int_equal(metrics_get(m, METRIC_RETRIES, 0, 0), 0);
}

static void without_the_store_there_are_only_series_of_the_node(void **state)
{
	AUTO(metrics) *m = metrics_of_test();
	AUTO_TEXT text = text_of(m, METRICS_TEXT, NULL);

	(void)state;
	assert_null(strstr(text, "jobsched_cluster_"));
	assert_null(strstr(text, "jobsched_job_"));
	has_line(text, "jobsched_store_up 0");
}

static void openmetrics_names_families_without_suffix_and_ends_with_eof(void **state)
{
	AUTO(metrics) *m = metrics_of_test();
	AUTO_TEXT open = text_of(m, METRICS_OPENMETRICS, NULL);
	AUTO_TEXT text = text_of(m, METRICS_TEXT, NULL);

	(void)state;
	has_line(open, "# TYPE jobsched_attempts counter");
	has_line(text, "# TYPE jobsched_attempts_total counter");
	has_line(open, "# TYPE jobsched_build info");
	has_line(text, "# TYPE jobsched_build_info gauge");
	has_line(open, "# UNIT jobsched_start_lateness_seconds seconds");
	has_line(open, "jobsched_build_info{version=\"1.0\"} 1");
	assert_string_equal(open + strlen(open) - 6, "# EOF\n");
	assert_null(strstr(text, "# EOF"));
	assert_null(strstr(text, "# UNIT"));
}

static void labels_are_escaped_and_unknown_values_are_nan(void **state)
{
	AUTO(metrics) *m = metrics_of_test();
	AUTO(metrics_snapshot) *s = metrics_snapshot_new(m);
	struct metric_job job = {.id = 7, .name = (char *)"a\n\"b\"", .owner = (char *)"o\\", .took = 1500000, .next = -250000};
	struct metric_counts c = {.slots = xcalloc(slot_outcomes_count, sizeof(int64_t)), .jobs = &job, .n_jobs = 1};
	struct buf out = {};

	(void)state;
	metrics_snapshot_set(s, METRIC_CLOCK_OFFSET, 0, 0, -250000);
	metrics_snapshot_set(s, METRIC_SEGMENTS, 0, 0, METRICS_UNKNOWN);
	metrics_text_write(&out, METRICS_TEXT, s, &c, &(struct metrics_text_labels){"1.0", "n\"1\\", "sqlite"});
	has_line(out.data, "jobsched_node_info{node=\"n\\\"1\\\\\",backend=\"sqlite\"} 1");
	has_line(out.data, "jobsched_job_last_duration_seconds{job=\"7\",name=\"a\\n\\\"b\\\"\",owner=\"o\\\\\"} 1.5");
	has_line(out.data, "jobsched_clock_offset_seconds -0.25");
	has_line(out.data, "jobsched_segments NaN");
	buf_done(&out);
	free(c.slots);
}

static void *add_many(void *arg)
{
	for (int i = 0; i < ADDS; i++) {
		metrics_add(arg, METRIC_RETRIES, 0, 0, 1);
		metrics_observe(arg, METRIC_STORE_BATCH, 0, 3);
	}
	return NULL;
}

static void threads_count_together(void **state)
{
	AUTO(metrics) *m = metrics_of_test();
	AUTO_TEXT text = NULL;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, add_many, m), 0);
	add_many(m);
	pthread_join(thread, NULL);
	assert_int_equal(metrics_get(m, METRIC_RETRIES, 0, 0), 2 * ADDS);
	text = text_of(m, METRICS_TEXT, NULL);
	has_line(text, "jobsched_store_batch_size_bucket{le=\"2.0\"} 0");
	has_line(text, "jobsched_store_batch_size_sum 120000");
}

static void the_table_is_complete_and_its_names_are_valid(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_MAX; i++) {
		const struct metric_desc *d = &metric_table[i];
		size_t len = d->name ? strlen(d->name) : 0;

		assert_non_null(d->name);
		assert_true(text_starts(d->name, "jobsched_"));
		assert_int_equal(strspn(d->name, "abcdefghijklmnopqrstuvwxyz_"), len);
		assert_true(d->divisor > 0 && d->help && d->help[0]);
		assert_int_equal(d->type == METRIC_HISTOGRAM, d->buckets != NULL);
		assert_null(strstr(d->name, "_total"));
		if (d->unit)
			assert_string_equal(d->name + len - strlen(d->unit), d->unit);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(d->name, metric_table[j].name);
		for (size_t b = 1; b < metric_bucket_count(d); b++)
			assert_true(d->buckets[b - 1] < d->buckets[b]);
	}
}

static void reasons_of_runs_have_a_class(void **state)
{
	(void)state;
	assert_string_equal(slot_outcome_class(RUN_FAILED, NULL), "exit");
	assert_string_equal(slot_outcome_class(RUN_FAILED, "retries used up"), "retries");
	assert_string_equal(slot_outcome_class(RUN_FAILED, "no_warrant"), "denied");
	assert_string_equal(slot_outcome_class(RUN_FAILED, "a new one"), "other");
	assert_string_equal(slot_outcome_class(RUN_EXPIRED, "deadline (overlap)"), "deadline");
	assert_string_equal(slot_outcome_class(RUN_SKIPPED, "missed"), "missed");
	assert_string_equal(slot_outcome_class(RUN_SUCCEEDED, "x"), "none");
	for (size_t i = 0; i < slot_outcomes_count; i++)
		assert_true(slot_outcome_index(slot_outcomes[i].state, slot_outcomes[i].reason) <= i);
	assert_int_equal(slot_outcome_index(RUN_QUEUED, "none"), slot_outcomes_count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_accept_header_selects_the_format),
		cmocka_unit_test(every_series_exists_before_anything_was_counted),
		cmocka_unit_test(counters_and_histograms_show_what_was_counted),
		cmocka_unit_test(without_the_store_there_are_only_series_of_the_node),
		cmocka_unit_test(openmetrics_names_families_without_suffix_and_ends_with_eof),
		cmocka_unit_test(labels_are_escaped_and_unknown_values_are_nan),
		cmocka_unit_test(threads_count_together),
		cmocka_unit_test(the_table_is_complete_and_its_names_are_valid),
		cmocka_unit_test(reasons_of_runs_have_a_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
