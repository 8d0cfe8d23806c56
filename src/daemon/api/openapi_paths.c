/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of openapi.json: the operations of the route table and their responses. */
#include "daemon/api/openapi_paths.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "daemon/api/openapi_schema.h"
#include "daemon/api/route.h"
#include <ctype.h>
#include <string.h>

static json_t *path_parameter(const json_t *text, const char *path)
{
	const char *open = strchr(path, '{');
	AUTO_TEXT name = open ? xstrndup(open + 1, strcspn(open + 1, "}")) : NULL;
	const json_t *v =
		name ? json_object_get(json_object_get(text, "path_parameters"), name) : NULL;
	json_t *schema;

	if (!open)
		return NULL;
	if (!v)
		openapi_die("'path_parameters' has no '%s'", name);
	schema = openapi_schema(v);
	json_object_del(schema, "description");
	return json_pack("{s:s, s:s, s:b, s:o, s:O}", "name", name, "in", "path", "required", 1,
		"schema", schema, "description", json_array_get(v, 1));
}

static json_t *query_schema(const struct query_param *p)
{
	json_t *o;

	switch (p->type) {
	case QUERY_NUMBER:
		o = json_pack("{s:s, s:I}", "type", "integer", "minimum", (json_int_t)p->min);
		if (p->max != INT64_MAX)
			json_object_set_new(o, "maximum", json_integer(p->max));
		return o;
	case QUERY_BOOL:
		return openapi_type("boolean");
	case QUERY_JOB_STATES:
		return openapi_type("job_state[]");
	case QUERY_RUN_STATES:
		return openapi_type("run_state[]");
	default:
		return openapi_type("string");
	}
}

static json_t *query_parameter(const struct query_param *p, const json_t *preset /* NULL: none */)
{
	AUTO_TEXT help =
		xprintf("%s%s", p->help, p->type == QUERY_TIME ? "; RFC 3339 or @epoch" : "");
	json_t *schema = query_schema(p), *o;

	if (preset)
		json_object_set(schema, "default", (json_t *)preset);
	o = json_pack("{s:s, s:s, s:b, s:o, s:s}", "name", p->name, "in", "query", "required", 0,
		"schema", schema, "description", help);
	if (p->type == QUERY_JOB_STATES || p->type == QUERY_RUN_STATES)
		json_object_update_new(o, json_pack("{s:s, s:b}", "style", "form", "explode", 0));
	return o;
}

static json_t *make_parameters(const json_t *text, const struct route *r, const json_t *entry)
{
	json_t *all = json_array(), *path = path_parameter(text, r->path);

	if (path)
		json_array_append_new(all, path);
	for (size_t i = 0; i < ROUTE_QUERY_MAX && r->query[i].name; i++)
		json_array_append_new(all, query_parameter(&r->query[i],
			json_object_get(json_object_get(entry, "defaults"), r->query[i].name)));
	return all;
}

/* {"NAME": ["integer", "description"]} */
static json_t *make_headers(const json_t *headers)
{
	json_t *all = json_object(), *v;
	const char *name;

	json_object_foreach((json_t *)headers, name, v) json_object_set_new(all, name,
		json_pack("{s:o, s:O}", "schema",
			openapi_type(json_string_value(json_array_get(v, 0))), "description",
			json_array_get(v, 1)));
	return all;
}

/* ["description", schema], or {"description", "headers", "content": {MEDIA TYPE: schema}} */
static json_t *make_response(const json_t *v)
{
	json_t *o, *content, *schema;
	const char *type;

	if (json_is_array(v))
		return json_pack("{s:O, s:{s:{s:o}}}", "description", json_array_get(v, 0),
			"content", "application/json", "schema", openapi_schema(json_array_get(v, 1)));
	o = json_pack("{s:O}", "description", json_object_get(v, "description"));
	if (json_object_get(v, "headers"))
		json_object_set_new(o, "headers", make_headers(json_object_get(v, "headers")));
	content = json_object();
	json_object_foreach(json_object_get(v, "content"), type, schema)
		json_object_set_new(content, type,
			json_object_size(schema) == 0 && json_is_object(schema)
				? json_object()
				: json_pack("{s:o}", "schema", openapi_schema(schema)));
	json_object_set_new(o, "content", content);
	return o;
}

static const struct {
	const char *name;
	enum err_kind kind;
} errors[] = {
	{"Invalid", ERR_INVALID},
	{"Denied", ERR_DENIED},
	{"Unauthenticated", ERR_UNAUTHENTICATED},
	{"NotFound", ERR_NOT_FOUND},
	{"Conflict", ERR_CONFLICT},
	{"TooLarge", ERR_TOO_LARGE},
	{"Limit", ERR_LIMIT},
	{"Busy", ERR_BUSY},
	{"Uncertain", ERR_UNCERTAIN},
	{"Full", ERR_FULL},
};

static bool may_fail(enum err_kind kind, const struct route *r, const json_t *entry,
	const char *name)
{
	bool changes = r->what != EVENT_NONE && strcmp(r->method, "GET") != 0;
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(entry, "errors"), i, v)
		if (strcmp(json_string_value(v), name) == 0)
			return true;
	switch (kind) {
	case ERR_NOT_FOUND:
	case ERR_CONFLICT:
		return false;
	case ERR_TOO_LARGE:
		return r->body != BODY_NONE;
	case ERR_UNCERTAIN:
	case ERR_FULL:
		return changes;
	default:
		return true;
	}
}

static json_t *make_responses(const struct route *r, const json_t *entry)
{
	json_t *all = json_object(), *v;
	const char *key;

	json_object_foreach((json_t *)entry, key, v)
		if (isdigit((unsigned char)*key))
			json_object_set_new(all, key, make_response(v));
	for (size_t i = 0; i < ELEMENTS(errors); i++) {
		AUTO_TEXT status = xprintf("%d", err_kind_info(errors[i].kind)->http);

		if (may_fail(errors[i].kind, r, entry, errors[i].name))
			json_object_set_new(all, status,
				json_pack("{s:s+}", "$ref", "#/components/responses/",
					errors[i].name));
	}
	return all;
}

static json_t *make_body(const struct route *r, const json_t *entry)
{
	const json_t *body = json_object_get(entry, "body");

	if (!body != (r->body == BODY_NONE))
		openapi_die("'%s %s' has a body in only one of the route table and the text file",
			r->method, r->path);
	if (!body)
		return NULL;
	return json_pack("{s:b, s:{s:{s:o}}}", "required", r->body != BODY_OPTIONAL, "content",
		"application/json", "schema", openapi_schema(body));
}

static json_t *make_operation(const json_t *text, const struct route *r, const json_t *entry)
{
	json_t *o = json_pack("{s:O, s:s}", "operationId", json_object_get(entry, "id"), "summary",
		r->summary);
	json_t *description = json_object_get(entry, "description"), *body = make_body(r, entry);
	json_t *parameters = make_parameters(text, r, entry);

	if (!o)
		openapi_die("'%s %s' has no 'id'", r->method, r->path);
	if (description)
		json_object_set(o, "description", description);
	if (json_array_size(parameters) > 0)
		json_object_set(o, "parameters", parameters);
	json_decref(parameters);
	if (body)
		json_object_set_new(o, "requestBody", body);
	json_object_set_new(o, "responses", make_responses(r, entry));
	return o;
}

json_t *openapi_paths(const json_t *text)
{
	json_t *entries = json_object_get(text, "operations"), *paths = json_object();

	for (size_t i = 0; i < routes_count; i++) {
		const struct route *r = &routes[i];
		AUTO_TEXT name = xprintf("%s %s", r->method, r->path);
		const json_t *entry = json_object_get(entries, name);
		AUTO_TEXT method = xstrdup(r->method);

		if (!entry)
			openapi_die("'operations' has no '%s'", name);
		for (char *c = method; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		if (!json_object_get(paths, r->path))
			json_object_set_new(paths, r->path, json_object());
		json_object_set_new(json_object_get(paths, r->path), method,
			make_operation(text, r, entry));
	}
	if (json_object_size(entries) != routes_count)
		openapi_die("'operations' has %zu entries, but there are %zu routes",
			json_object_size(entries), routes_count);
	return paths;
}

/* "description", or ["description", headers] */
json_t *openapi_paths_errors(const json_t *text)
{
	json_t *all = json_object(), *v;
	const char *name;

	json_object_foreach(json_object_get(text, "responses"), name, v) {
		json_t *o = json_pack("{s:O, s:{s:{s:o}}}", "description",
			json_is_array(v) ? json_array_get(v, 0) : v, "content", "application/json",
			"schema", openapi_type("Error"));

		if (json_is_array(v))
			json_object_set_new(o, "headers", make_headers(json_array_get(v, 1)));
		json_object_set_new(all, name, o);
	}
	return all;
}
