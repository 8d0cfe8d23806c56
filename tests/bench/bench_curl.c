/* SPDX-License-Identifier: Apache-2.0 */
/* Sends POST requests with libcurl's multi interface, without a scheduler. Prints seconds and CPU seconds. */
/* usage: bench_curl URL REQUESTS PARALLEL */
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

static void add(CURLM *multi, const char *url, struct curl_slist *headers)
{
	CURL *easy = curl_easy_init();

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"a\": 1}");
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_multi_add_handle(multi, easy);
}

int main(int argc, char **argv)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	CURLM *multi = curl_multi_init();
	int left = argc == 4 ? atoi(argv[2]) : 0, started = 0, running = 0, queued, had;
	double begun = now();
	struct rusage u;
	const CURLMsg *m;

	if (left <= 0)
		return 2;
	for (int total = left; left > 0;) {
		for (; started < total && started - (total - left) < atoi(argv[3]); started++)
			add(multi, argv[1], headers);
		had = left;
		curl_multi_perform(multi, &running);
		while ((m = curl_multi_info_read(multi, &queued))) {
			CURL *easy = m->easy_handle;

			if (m->data.result != CURLE_OK) {
				fprintf(stderr, "%s\n", curl_easy_strerror(m->data.result));
				return 1;
			}
			curl_multi_remove_handle(multi, easy);
			curl_easy_cleanup(easy);
			left--;
		}
		if (left > 0 && (left == had || started == total)) /* otherwise the next requests are added at once */
			curl_multi_poll(multi, NULL, 0, 1000, NULL);
	}
	getrusage(RUSAGE_SELF, &u);
	printf("%.3f %.3f\n", now() - begun,
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	curl_multi_cleanup(multi);
	curl_slist_free_all(headers);
	return 0;
}
