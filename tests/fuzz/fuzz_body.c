/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the body of a submission. The first byte selects one job ('1') or a bulk. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/time/zone_cache.h"
#include "daemon/api/submit/submission.h"
#include "wire/spec_json.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Without zone files: only UTC is known. */
static bool no_zone(const char *name, struct buf *out, struct err *e)
{
	(void)out;
	return err_field(e, "tz", "no zone '%s'", name);
}

/* An accepted job must read back as it was written, because the planner parses it again. */
static void check_job(const struct submission_job *j)
{
	AUTO_DONE(job_spec) back = {};
	AUTO_TEXT again = NULL;

	job_spec_init(&back);
	if (!spec_json_from_text(j->text, &back, NULL) || !job_spec_check(&back, NULL))
		abort();
	again = spec_json_to_text(&back);
	if (strcmp(again, j->text) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO(zone_cache) *zones = zone_cache_new(no_zone);
	AUTO_DONE(submission) s = {};
	struct err e = {};
	bool ok;

	if (len == 0)
		return 0;
	submission_init(&s);
	s.bulk = data[0] != '1';
	s.max_body = 1 << 20;
	s.max_jobs = 100;
	s.now = INT64_C(1700000000) * USEC_SEC;
	buf_add(&s.body, data + 1, len - 1);
	ok = submission_prepare(&s, zones, &e);
	if (!ok && (e.kind == ERR_NONE || e.kind == ERR_INTERNAL || !e.msg[0]))
		abort();
	for (size_t i = 0; ok && i < s.n; i++)
		check_job(&s.v[i]);
	return 0;
}
