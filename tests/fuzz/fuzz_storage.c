/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the texts that storage and credential servers send, and the names of archived runs. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/target/s3_url.h"
#include "daemon/archive/archive_names.h"
#include "net/aws/aws_credentials.h"
#include "net/aws/aws_sources.h"
#include "net/aws/s3_xml.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_keys(struct aws_keys *k)
{
	if (!k->id || !*k->id || !k->secret || strpbrk(k->id, " \r\n") || strpbrk(k->secret, " \r\n"))
		abort();
	aws_keys_done(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_TEXT text = xstrndup((const char *)data, size);
	AUTO_DONE(buf) keys = {};
	AUTO_DONE(buf) value = {};
	struct archive_run_name name;
	struct aws_keys k = {};
	struct s3_name s3;
	struct err e = {}, other = {}, third = {};
	bool more = false;

	if (s3_xml_keys(text, &keys, &more) && keys.len > 0 && keys.data[keys.len - 1] != '\n')
		abort();
	s3_xml_text(text, "Code", &value);
	if (aws_sources_json(text, &k, &e))
		check_keys(&k);
	else if (!e.kind)
		abort();
	if (aws_sources_profile(text, "default", &k, &other))
		check_keys(&k);
	if (archive_name_parse(text, &name) && (!text_starts(text, "runs/") || strstr(text + 5, "..//") || strchr(text + 16, '/')))
		abort();
	if (s3_url_parse(text, &s3, &third)) {
		const struct s3_place place = {.endpoint = "http://h", .region = "r"};
		AUTO_TEXT url = s3_url_request(&place, s3.bucket, s3.key, NULL);

		if (!text_starts(url, "http://h/") || strpbrk(url, " \r\n?#"))
			abort();
	}
	return 0;
}
