/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the requests of jobs with libcurl's multi interface, without a scheduler. Prints seconds and CPU seconds. */
/* usage: bench_curl URL REQUESTS PARALLEL      each of the PARALLEL handles is used again */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	return size * n;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The headers that jobsched-net sends. */
static struct curl_slist *headers_new(int number)
{
	static const char *const starts[] = {"Idempotency-Key: 0a1b2c3d4e5f60718293a4b5c6d7e8f9-",
		"webhook-id: 0a1b2c3d4e5f60718293a4b5c6d7e8f9-", "Jobsched-Job: ", "Jobsched-Run: ", "Jobsched-Attempt: ",
		"Jobsched-Slot: 2026-11-19T04:00:00.", "traceparent: 00-0a1b2c3d4e5f60718293a4b5c6d7e8f9-0a1b2c3d4e5f6071-01"};
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
	char line[128];

	list = curl_slist_append(list, "Expect:");
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		snprintf(line, sizeof(line), "%s%d", starts[i], number);
		list = curl_slist_append(list, line);
	}
	return list;
}

static CURL *handle_new(const char *url)
{
	CURL *easy = curl_easy_init();

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"a\": 1}");
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "bench_curl/1.0");
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
	return easy;
}

static void request_start(CURLM *multi, CURL *easy, int number)
{
	struct curl_slist *old = NULL, *headers = headers_new(number);

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &old);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, headers);
	curl_slist_free_all(old);
	curl_multi_add_handle(multi, easy);
}

/* Returns the number of requests that have ended, or -1. */
static int requests_collect(CURLM *multi, int *started, int total)
{
	const CURLMsg *m;
	int queued, n = 0;

	while ((m = curl_multi_info_read(multi, &queued))) {
		CURL *easy = m->easy_handle;
		long status = 0;

		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
		if (m->data.result != CURLE_OK || status != 200) {
			fprintf(stderr, "%s, status %ld\n", curl_easy_strerror(m->data.result), status);
			return -1;
		}
		curl_multi_remove_handle(multi, easy);
		if (*started < total)
			request_start(multi, easy, ++*started);
		else
			curl_easy_cleanup(easy);
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	CURLM *multi = curl_multi_init();
	int total = argc == 4 ? atoi(argv[2]) : 0, left = total, started = 0, running = 0;
	double begun = now();
	struct rusage u;

	if (total <= 0)
		return 2;
	while (started < total && started < atoi(argv[3]))
		request_start(multi, handle_new(argv[1]), ++started);
	while (left > 0) {
		int n;

		curl_multi_perform(multi, &running);
		n = requests_collect(multi, &started, total);
		if (n < 0)
			return 1;
		left -= n;
		if (left > 0 && n == 0)
			curl_multi_poll(multi, NULL, 0, 1000, NULL);
	}
	getrusage(RUSAGE_SELF, &u);
	printf("%.3f %.3f\n", now() - begun,
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	curl_multi_cleanup(multi);
	return 0;
}
