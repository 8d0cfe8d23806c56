/* SPDX-License-Identifier: Apache-2.0 */
/* Converts templates to JSON or to jobs. */
#include "daemon/api/submit/template.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/params.h"
#include "store/store.h"
#include "store/template.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <string.h>

static int compare_params(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool read_param(const char *name, const json_t *v, struct strv *to, struct err *e)
{
	const char *text = json_string_value(v);
	AUTO_TEXT pair = NULL;

	if (!param_name_valid(name, strlen(name)))
		return err_field(e, "params",
			"'%.64s' is not a parameter name: up to 64 letters, digits and '_'", name);
	if (json_is_null(v)) {
		strv_add(to, name);
		return true;
	}
	if (!text || strlen(text) != json_string_length(v))
		return err_field(e, "params",
			"the default of '%.64s' must be a string, or null if a value must be given",
			name);
	pair = xprintf("%s=%s", name, text);
	if (!job_field_find("params")->check(pair, e))
		return false;
	strv_take(to, STEAL(pair));
	return true;
}

bool template_params_read(const json_t *o, struct strv *ret, struct err *e)
{
	AUTO_DONE(strv) list = {};
	const char *name;
	json_t *v;

	if (o && !json_is_object(o))
		return err_field(e, "params", "'params' must be an object of strings and nulls");
	if ((int64_t)json_object_size(o) > job_field_find("params")->max)
		return err_field(e, "params", "a template may have at most %lld parameters",
			(long long)job_field_find("params")->max);
	json_object_foreach((json_t *)o, name, v) {
		if (!read_param(name, v, &list, e))
			return false;
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(char *), compare_params);
	*ret = list;
	list = (struct strv){};
	return true;
}

json_t *template_params_write(const struct strv *params)
{
	json_t *o = json_object();

	for (size_t i = 0; i < params->n; i++) {
		size_t len = strcspn(params->v[i], "=");
		AUTO_TEXT name = xstrndup(params->v[i], len);

		json_object_set_new(o, name,
			params->v[i][len] ? json_value_text(params->v[i] + len + 1) : json_null());
	}
	return o;
}

bool template_read(const json_t *body, struct job_spec *spec, struct strv *params, struct err *e)
{
	json_auto_t *rest = NULL;

	if (!json_is_object(body))
		return err_set(e, ERR_INVALID, "a template must be a JSON object");
	rest = json_copy((json_t *)body);
	if (!template_params_read(json_object_get(rest, "params"), params, e))
		return false;
	json_object_del(rest, "params");
	if (json_object_get(rest, "name") || json_object_get(rest, "template"))
		return err_field(e, json_object_get(rest, "name") ? "name" : "template",
			"a template cannot have '%s': only the jobs made from it can",
			json_object_get(rest, "name") ? "name" : "template");
	return spec_json_read(rest, spec, NULL, e) && job_spec_check(spec, e) &&
	       params_check(spec, params, e);
}

bool template_apply(const struct template *t, const json_t *submission, struct job_spec *spec,
	struct err *e)
{
	AUTO_DONE(strv) declared = {};
	AUTO_DONE(strv) values = {};
	json_auto_t *params = json_read(t->params, strlen(t->params), strlen(t->params), e);

	if (!params || !template_params_read(params, &declared, e) ||
		!spec_json_from_text(t->spec, spec, e))
		return err_wrap(e, "the template '%s' cannot be read", t->name);
	free(STEAL(spec->warrant)); /* the job needs a warrant of its own */
	if (!spec_json_merge(submission, spec, e) ||
		!params_overlay(&declared, &spec->params, &values, e))
		return false;
	strv_done(&spec->params);
	spec->params = values;
	values = (struct strv){};
	return true;
}

json_t *template_to_json(const struct template *t, bool whole)
{
	struct err e = {};
	json_t *params = json_read(t->params, strlen(t->params), strlen(t->params), &e);
	json_t *o = json_pack("{s:o, s:o, s:b, s:I, s:o, s:o, s:o}", "name",
		json_value_text(t->name), "owner", json_value_text(t->owner), "shared", t->uid == 0,
		"revision", (json_int_t)t->revision, "params", params ? params : json_object(),
		"created_at", json_value_time(t->created_at), "updated_at",
		json_value_time(t->updated_at));

	if (whole) {
		AUTO_DONE(job_spec) spec;

		job_spec_init(&spec);
		json_object_set_new(o, "definition",
			spec_json_from_text(t->spec, &spec, &e) ? spec_json_write(&spec)
								: json_object());
	}
	return o;
}
