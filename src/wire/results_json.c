/* SPDX-License-Identifier: Apache-2.0 */
/* Reads results from JSON that the target of a call sent. */
#include "wire/results_json.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/result.h"
#include "wire/json_read.h"
#include <stdlib.h>
#include <string.h>

static const char *const fault_of_value = "is not a string, a number or a boolean";

/* NULL: the value cannot be a result. Caller frees. */
static char *value_text(const json_t *v)
{
	if (json_is_string(v))
		return strlen(json_string_value(v)) == json_string_length(v) ? xstrdup(json_string_value(v)) : NULL;
	return json_is_number(v) || json_is_boolean(v) ? json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
}

/* Why a member is not a result; NULL: it was added. */
static const char *member_add(const char *key, const json_t *v, struct strv *ret)
{
	AUTO_TEXT value = value_text(v);
	AUTO_TEXT line = NULL;
	AUTO_TEXT note = NULL;
	size_t had = ret->n;

	if (!value)
		return fault_of_value;
	if (!result_key_valid(key, strlen(key)))
		return "is not a letter or '_' followed by at most 47 letters, digits and '_'";
	if (strlen(value) > RESULT_VALUE_MAX)
		return "has a value of more than 1024 bytes";
	if (strchr(value, '\n'))
		return "has a value with control characters";
	line = xprintf("%s=%s", key, value);
	results_parse(line, strlen(line), ret, &note);
	return ret->n > had ? NULL : ret->n >= RESULTS_MAX ? "is the 33rd; a run has at most 32" : "has a value with control characters";
}

void results_json_take(const json_t *o, struct strv *ret, char **ret_note)
{
	size_t bytes = 0;
	const char *key;
	json_t *v;

	*ret_note = NULL;
	json_object_foreach((json_t *)o, key, v) {
		const char *fault = bytes > RESULTS_BYTES_MAX ? "is behind 16384 bytes of results" : member_add(key, v, ret);

		if (fault && !*ret_note)
			*ret_note = xprintf("the result '%.48s' %s; such results are left out", key, fault);
		if (!fault)
			bytes += strlen(ret->v[ret->n - 1]) + 1;
	}
}

void results_json_from_response(const char *text, size_t len, struct strv *ret, char **ret_note)
{
	struct err e = {};
	json_auto_t *o = json_read_bounded(text, len, len, JSON_MEMBERS_MAX, &e);
	const json_t *results = json_is_object(o) ? json_object_get(o, "results") : NULL;

	*ret_note = NULL;
	if (json_is_object(results))
		results_json_take(results, ret, ret_note);
}
