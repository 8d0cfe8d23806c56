/* SPDX-License-Identifier: Apache-2.0 */
/* Run parameters as a flat JSON object. */
#include "wire/params_json.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/params.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include <string.h>

bool params_json_read(const json_t *o, struct strv *ret, struct err *e)
{
	const struct job_field *f = job_field_find("params");
	AUTO_DONE(strv) list = {};
	const char *name;
	json_t *v;

	if (!json_is_object(o))
		return err_field(e, "params", "'params' must be an object of strings");
	if ((int64_t)json_object_size(o) > f->max)
		return err_field(e, "params", "'params' has more than %lld members",
			(long long)f->max);
	json_object_foreach((json_t *)o, name, v) {
		const char *text = json_string_value(v);
		AUTO_TEXT pair = NULL;

		if (!text || strlen(text) != json_string_length(v))
			return err_field(e, "params",
				"the value of '%.64s' must be a string without NUL", name);
		pair = xprintf("%s=%s", name, text);
		if (!f->check(pair, e))
			return false;
		strv_take(&list, STEAL(pair));
	}
	*ret = list;
	list = (struct strv){};
	return true;
}

bool params_json_from_text(const char *text, struct strv *ret, struct err *e)
{
	json_t *o;
	bool ok;

	if (!text)
		return true;
	o = json_read(text, strlen(text), strlen(text), e);
	ok = o && params_json_read(o, ret, e);
	json_decref(o);
	return ok;
}

bool params_json_run_from_text(const char *text, struct strv *ret, char **ret_warrant,
	char **ret_trace, struct err *e)
{
	json_t *o;
	bool ok;

	if (!text)
		return true;
	o = json_read(text, strlen(text), strlen(text), e);
	if (!o)
		return false;
	*ret_warrant = xstrdup(json_string_value(json_object_get(o, "")));
	*ret_trace = xstrdup(json_string_value(json_object_get(o, PARAMS_JSON_TRACE)));
	json_object_del(o, "");
	json_object_del(o, PARAMS_JSON_TRACE);
	json_object_del(o, PARAMS_JSON_PARENT);
	ok = params_json_read(o, ret, e);
	json_decref(o);
	return ok;
}

char *params_json_of_parent(const char *lines)
{
	json_auto_t *o = json_pack("{s:s}", PARAMS_JSON_PARENT, lines);
	AUTO_DONE(buf) out = {};

	if (!o) /* the text is not UTF-8 */
		return NULL;
	json_value_write(o, &out);
	return buf_steal(&out);
}

char *params_json_parent(const char *text)
{
	json_auto_t *o = text ? json_read(text, strlen(text), strlen(text), NULL) : NULL;

	return xstrdup(json_string_value(json_object_get(o, PARAMS_JSON_PARENT)));
}

char *params_json_to_text(const struct strv *params, struct err *e)
{
	json_auto_t *o = json_object();
	AUTO_DONE(buf) out = {};

	for (size_t i = 0; i < params->n; i++) {
		const char *eq = strchr(params->v[i], '=');
		AUTO_TEXT name = eq ? xstrndup(params->v[i], (size_t)(eq - params->v[i])) : NULL;

		if (!eq || json_object_set_new(o, name, json_string(eq + 1)) < 0) {
			err_field(e, "params", "'%.64s' is not NAME=VALUE of UTF-8 text",
				params->v[i]);
			return NULL;
		}
	}
	json_value_write(o, &out);
	return buf_steal(&out);
}
