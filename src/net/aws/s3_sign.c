/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the options of libcurl that sign a request. */
#include "net/aws/s3_sign.h"
#include "base/auto.h"
#include "base/text.h"
#include "net/aws/aws_credentials.h"
#include <curl/curl.h>
#include <string.h>

bool s3_sign(void *easy, const struct aws_keys *keys, const char *region, const char *sha256, struct curl_slist **headers)
{
	AUTO_TEXT how = xprintf("aws:amz:%s:s3", region);
	AUTO_TEXT sum = xprintf("x-amz-content-sha256: %s", sha256);

	*headers = curl_slist_append(*headers, sum);
	if (keys->token) {
		AUTO_TEXT token = xprintf("x-amz-security-token: %s", keys->token);

		*headers = curl_slist_append(*headers, token);
		explicit_bzero(token, strlen(token));
	}
	return curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, how) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_USERNAME, keys->id) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_PASSWORD, keys->secret) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers) == CURLE_OK;
}
