/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the origin of a job from its definition. */
#include "daemon/crontab/table_origin.h"
#include "base/auto.h"
#include "core/job/job.h"
#include "wire/spec_json.h"

char *table_origin_of(const char *text)
{
	AUTO_DONE(job_spec) spec;

	job_spec_init(&spec);
	return spec_json_from_text(text, &spec, NULL) ? STEAL(spec.origin) : NULL;
}
