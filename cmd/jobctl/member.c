/* SPDX-License-Identifier: Apache-2.0 */
/* Reads members of JSON objects. */
#include "jobctl/member.h"

#include "base/rfc3339.h"
#include "base/text.h"

int64_t member_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

const char *member_text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

usec_t member_time(const json_t *o, const char *key)
{
	const char *text = member_text(o, key);
	usec_t t = 0;

	return text && rfc3339_parse(text, &t, NULL) ? t : 0;
}
