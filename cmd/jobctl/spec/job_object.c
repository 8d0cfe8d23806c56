/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the definition out of a job object of the API. */
#include "jobctl/spec/job_object.h"

#include "base/auto.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "wire/spec_json.h"

bool job_object_read_spec(const json_t *job, struct job_spec *s, struct err *e)
{
	json_auto_t *members = json_object();

	for (size_t i = 0; i < job_fields_count; i++) {
		AUTO_TEXT coded = xprintf("%s_b64", job_fields[i].name);
		const char *const keys[] = {job_fields[i].name, coded};

		for (size_t k = 0; k < ELEMENTS(keys); k++) {
			json_t *value = json_object_get(job, keys[k]);

			if (value && !json_is_null(value))
				json_object_set(members, keys[k], value);
		}
	}
	return spec_json_read(members, s, NULL, e);
}
