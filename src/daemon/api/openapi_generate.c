/* SPDX-License-Identifier: Apache-2.0 */
/* Generates openapi.json from the tables of the daemon, with the texts of openapi_text.json. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/notice.h"
#include "core/job/pause.h"
#include "core/job/run.h"
#include "daemon/api/route.h"
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * usage: openapi_generate openapi_text.json >openapi.json
 *
 * The tables give the paths, the parameters, the fields of a job and the enumerations. The text
 * file gives the descriptions and the other schemas in a short form: "TYPE", or ["TYPE",
 * "description", {further keywords}]. TYPE is a type of JSON Schema, "time", "duration", an
 * enumeration of enums[] or the name of a schema; "[]" after it means an array, and "?" allows
 * null. An object has "members" instead of "properties". "required": true requires all of them,
 * "counts" adds an integer for each word of an enumeration, and "fields" adds the fields of a job.
 *
 * The build fails if a route has no entry in the text file, or an entry has no route or field.
 */

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("openapi_generate: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* ---- enumerations ---- */

static const char *word_job_state(int i)
{
	return job_state_name((enum job_state)i);
}

static const char *word_run_state(int i)
{
	return run_state_name((enum run_state)i);
}

static const char *word_run_kind(int i)
{
	return run_kind_name((enum run_kind)i);
}

static const char *word_attempt_outcome(int i)
{
	return attempt_outcome_name((enum attempt_outcome)i);
}

static const char *word_error_code(int i)
{
	return err_kind_info((enum err_kind)(i + 1))->code; /* the first kind is "no error" */
}

static const char *word_notice_kind(int i)
{
	return notice_kind_name((enum notice_kind)(i + 1)); /* the first kind is "no notice" */
}

static const char *word_notice_state(int i)
{
	return notice_state_name((enum notice_state)i);
}

static const char *word_pause_scope(int i)
{
	return pause_scope_name((enum pause_scope)i);
}

static const struct enumeration {
	const char *name;
	int count;
	const char *(*word)(int i);
} enums[] = {
	{"job_state", JOB_STATE_MAX, word_job_state},
	{"run_state", RUN_STATE_MAX, word_run_state},
	{"run_kind", RUN_KIND_MAX, word_run_kind},
	{"attempt_outcome", ATTEMPT_OUTCOME_MAX, word_attempt_outcome},
	{"error_code", ERR_KIND_MAX - 1, word_error_code},
	{"notice_kind", NOTICE_KIND_MAX - 1, word_notice_kind},
	{"notice_state", NOTICE_STATE_MAX, word_notice_state},
	{"pause_scope", PAUSE_SCOPE_MAX, word_pause_scope},
};

static const struct enumeration *find_enum(const char *name)
{
	for (size_t i = 0; i < ELEMENTS(enums); i++)
		if (strcmp(enums[i].name, name) == 0)
			return &enums[i];
	return NULL;
}

static json_t *enum_words(const struct enumeration *en)
{
	json_t *a = json_array();

	for (int i = 0; i < en->count; i++)
		json_array_append_new(a, json_string(en->word(i)));
	return a;
}

/* ---- schemas ---- */

static json_t *expand(const json_t *v);

static json_t *base_type(const char *word)
{
	const struct enumeration *en = find_enum(word);

	if (isupper((unsigned char)*word))
		return json_pack("{s:s+}", "$ref", "#/components/schemas/", word);
	if (en)
		return json_pack("{s:s, s:o}", "type", "string", "enum", enum_words(en));
	if (strcmp(word, "time") == 0)
		return json_pack("{s:s, s:s}", "type", "string", "format", "date-time");
	if (strcmp(word, "duration") == 0)
		return json_pack("{s:[{s:s}, {s:s}]}", "oneOf", "type", "number", "type", "string");
	return json_pack("{s:s}", "type", word);
}

static json_t *nullable(json_t *o /* moved */)
{
	json_t *type = json_object_get(o, "type");

	if (!type)
		return json_pack("{s:[o, {s:s}]}", "anyOf", o, "type", "null");
	json_object_set_new(o, "type", json_pack("[O, s]", type, "null"));
	return o;
}

/* "Run", "integer?", "string[]" */
static json_t *expand_type(const char *text)
{
	AUTO_TEXT word = xstrdup(text);
	size_t len = strlen(word);
	bool null = len > 1 && word[len - 1] == '?';
	json_t *o;

	if (null)
		word[--len] = '\0';
	if (len > 2 && strcmp(word + len - 2, "[]") == 0) {
		word[len - 2] = '\0';
		o = json_pack("{s:s, s:o}", "type", "array", "items", base_type(word));
	} else {
		o = base_type(word);
	}
	return null ? nullable(o) : o;
}

/* ["integer", "description", {further keywords}] */
static json_t *expand_tuple(const json_t *v)
{
	const char *word = json_string_value(json_array_get(v, 0));
	const char *description = json_string_value(json_array_get(v, 1));
	json_t *more = json_array_get(v, 2), *o;

	if (!word || !description)
		die("a schema must be [\"TYPE\", \"description\"]");
	o = expand_type(word);
	if (*description)
		json_object_set_new(o, "description", json_string(description));
	if (more)
		json_object_update(o, more);
	return o;
}

static void add_counts(json_t *properties, const char *name)
{
	const struct enumeration *en = find_enum(name);

	if (!en)
		die("there is no enumeration '%s'", name);
	for (int i = 0; i < en->count; i++)
		json_object_set_new(properties, en->word(i), json_pack("{s:s}", "type", "integer"));
}

static json_t *member_names(const json_t *properties)
{
	json_t *names = json_array(), *v;
	const char *name;

	json_object_foreach((json_t *)properties, name, v)
		json_array_append_new(names, json_string(name));
	return names;
}

static json_t *expand_each(const json_t *list)
{
	json_t *a = json_array();
	const json_t *v;
	size_t i;

	json_array_foreach(list, i, v)
		json_array_append_new(a, expand(v));
	return a;
}

static json_t *expand_object(const json_t *from)
{
	const char *counts = json_string_value(json_object_get(from, "counts")), *key, *name;
	json_t *o = json_object(), *properties = json_object(), *v, *member;

	json_object_foreach((json_t *)from, key, v) {
		if (strcmp(key, "allOf") == 0 || strcmp(key, "anyOf") == 0 ||
			strcmp(key, "oneOf") == 0)
			json_object_set_new(o, key, expand_each(v));
		else if (strcmp(key, "items") == 0 ||
			 (strcmp(key, "additionalProperties") == 0 && !json_is_boolean(v)))
			json_object_set_new(o, key, expand(v));
		else if (strcmp(key, "type") == 0)
			json_object_update_new(o, expand_type(json_string_value(v)));
		else if (strcmp(key, "members") != 0 && strcmp(key, "counts") != 0 &&
			 strcmp(key, "fields") != 0)
			json_object_set(o, key, v);
	}
	json_object_foreach(json_object_get(from, "members"), name, member)
		json_object_set_new(properties, name, expand(member));
	if (counts)
		add_counts(properties, counts);
	if (json_is_true(json_object_get(from, "required")))
		json_object_set_new(o, "required", member_names(properties));
	if ((json_object_get(from, "members") || counts) && !json_object_get(o, "type"))
		json_object_set_new(o, "type", json_string("object"));
	if (json_object_size(properties) > 0)
		json_object_set(o, "properties", properties);
	json_decref(properties);
	return o;
}

static json_t *expand(const json_t *v)
{
	if (json_is_string(v))
		return expand_type(json_string_value(v));
	return json_is_array(v) ? expand_tuple(v) : expand_object(v);
}

/* ---- job fields ---- */

static json_t *field_choices(const struct job_field *f)
{
	json_t *a = json_array();

	for (int64_t i = 0; i <= f->max; i++)
		json_array_append_new(a, json_string(f->choices[i]));
	return json_pack("{s:s, s:o}", "type", "string", "enum", a);
}

static json_t *field_list(const struct job_field *f, bool answer)
{
	json_t *list = json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");

	if (answer)
		return list;
	json_object_set_new(list, "maxItems", json_integer(f->max));
	return json_pack("{s:[o, {s:s}]}", "oneOf", list, "type", "string");
}

static json_t *field_number(const struct job_field *f, bool answer)
{
	json_t *o = json_pack("{s:s}", "type", "integer");

	if (answer)
		return o;
	json_object_set_new(o, "minimum", json_integer(f->min));
	json_object_set_new(o, "maximum", json_integer(f->max));
	json_object_set_new(o, "default", json_integer(f->preset));
	return o;
}

static json_t *field_word(const struct job_field *f, bool answer)
{
	AUTO_TEXT preset = job_field_print(f, f->preset);
	json_t *o = f->type == FIELD_CHOICE ? field_choices(f) : expand_type("string");

	if (!answer && f->type == FIELD_OCTAL)
		json_object_set_new(o, "pattern", json_string("^[0-7]{1,8}$"));
	if (!answer)
		json_object_set_new(o, "default", json_string(preset));
	return o;
}

/* 'answer': the type as the daemon writes the field; otherwise as it accepts the field. */
static json_t *field_type(const struct job_field *f, bool answer)
{
	json_t *o;

	switch (f->type) {
	case FIELD_LIST:
		return field_list(f, answer);
	case FIELD_MAP:
		o = json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
			"string");
		if (!answer)
			json_object_set_new(o, "maxProperties", json_integer(f->max));
		return o;
	case FIELD_INT:
	case FIELD_SIZE:
		return field_number(f, answer);
	case FIELD_DURATION:
		o = expand_type(answer ? "number" : "duration");
		if (!answer)
			json_object_set_new(o, "default", json_integer(f->preset / USEC_SEC));
		return o;
	case FIELD_OCTAL:
	case FIELD_CHOICE:
		return field_word(f, answer);
	case FIELD_TIME:
	case FIELD_BLOB:
		return expand_type(answer ? "string?" : "string");
	default:
		o = expand_type(answer ? "string?" : "string");
		if (!answer)
			json_object_update_new(o,
				json_pack("{s:I, s:I}", "minLength", (json_int_t)f->min,
					"maxLength", (json_int_t)f->max));
		return o;
	}
}

/* The text file may replace the help text and add keywords. */
static void describe_field(const struct job_field *f, const json_t *prose, bool answer, json_t *o)
{
	const json_t *text = json_is_array(prose) ? json_array_get(prose, 0) : prose;
	const char *unit = f->type == FIELD_TIME ? "; RFC 3339 or @epoch"
			   : f->type != FIELD_DURATION ? ""
			   : answer ? ", in seconds" : ", in seconds or as a text like 1h30m";
	const char *none = f->type == FIELD_DURATION && f->preset == 0 ? "; 0: none" : "";
	AUTO_TEXT description =
		xprintf("%s%s%s", text ? json_string_value(text) : f->help, unit, none);

	json_object_set_new(o, "description", json_string(description));
	if (json_is_array(prose) && !answer)
		json_object_update(o, json_array_get(prose, 1));
}

static json_t *field_b64(const struct job_field *f, bool answer)
{
	json_t *bytes = json_pack("{s:s, s:s}", "type", "string", "contentEncoding", "base64"),
	       *o = bytes;
	AUTO_TEXT description = xprintf("'%s' when its bytes are not UTF-8", f->name);

	if (f->type == FIELD_LIST)
		o = json_pack("{s:s, s:o}", "type", "array", "items", bytes);
	else if (f->type == FIELD_MAP)
		o = json_pack("{s:s, s:o}", "type", "object", "additionalProperties", bytes);
	if (f->type == FIELD_MAP && !answer)
		json_object_set_new(o, "maxProperties", json_integer(f->max));
	json_object_set_new(o, "description", json_string(description));
	return o;
}

/* Adds the fields of a job to the properties of a schema that does not name them itself. */
static void add_fields(const json_t *text, bool answer, json_t *properties)
{
	const json_t *prose = json_object_get(text, "fields");

	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		AUTO_TEXT b64 = xprintf("%s_b64", f->name);
		json_t *o;

		if (!json_object_get(properties, f->name)) {
			o = field_type(f, answer);
			describe_field(f, json_object_get(prose, f->name), answer, o);
			json_object_set_new(properties, f->name, o);
		}
		if (f->bytes)
			json_object_set_new(properties, b64, field_b64(f, answer));
	}
}

static void check_fields(const json_t *text)
{
	const char *name;
	json_t *v;

	json_object_foreach(json_object_get(text, "fields"), name, v)
		if (!job_field_find(name))
			die("'fields' has '%s', which is no field of a job", name);
}

static json_t *make_schemas(const json_t *text)
{
	json_t *all = json_object(), *v;
	const char *name;

	json_object_foreach(json_object_get(text, "schemas"), name, v) {
		const char *fields =
			json_is_object(v) ? json_string_value(json_object_get(v, "fields")) : NULL;
		json_t *o = expand(v);

		if (fields)
			add_fields(text, strcmp(fields, "answer") == 0,
				json_object_get(o, "properties"));
		json_object_set_new(all, name, o);
	}
	return all;
}

/* ---- operations ---- */

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
		die("'path_parameters' has no '%s'", name);
	schema = expand(v);
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
		return expand_type("boolean");
	case QUERY_JOB_STATES:
		return expand_type("job_state[]");
	case QUERY_RUN_STATES:
		return expand_type("run_state[]");
	default:
		return expand_type("string");
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
			expand_type(json_string_value(json_array_get(v, 0))), "description",
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
			"content", "application/json", "schema", expand(json_array_get(v, 1)));
	o = json_pack("{s:O}", "description", json_object_get(v, "description"));
	if (json_object_get(v, "headers"))
		json_object_set_new(o, "headers", make_headers(json_object_get(v, "headers")));
	content = json_object();
	json_object_foreach(json_object_get(v, "content"), type, schema)
		json_object_set_new(content, type,
			json_object_size(schema) == 0 && json_is_object(schema)
				? json_object()
				: json_pack("{s:o}", "schema", expand(schema)));
	json_object_set_new(o, "content", content);
	return o;
}

static const struct {
	const char *name;
	enum err_kind kind;
} errors[] = {
	{"Invalid", ERR_INVALID},
	{"Denied", ERR_DENIED},
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
		die("'%s %s' has a body in only one of the route table and the text file",
			r->method, r->path);
	if (!body)
		return NULL;
	return json_pack("{s:b, s:{s:{s:o}}}", "required", r->body != BODY_OPTIONAL, "content",
		"application/json", "schema", expand(body));
}

static json_t *make_operation(const json_t *text, const struct route *r, const json_t *entry)
{
	json_t *o = json_pack("{s:O, s:s}", "operationId", json_object_get(entry, "id"), "summary",
		r->summary);
	json_t *description = json_object_get(entry, "description"), *body = make_body(r, entry);
	json_t *parameters = make_parameters(text, r, entry);

	if (!o)
		die("'%s %s' has no 'id'", r->method, r->path);
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

static json_t *make_paths(const json_t *text)
{
	json_t *entries = json_object_get(text, "operations"), *paths = json_object();

	for (size_t i = 0; i < routes_count; i++) {
		const struct route *r = &routes[i];
		AUTO_TEXT name = xprintf("%s %s", r->method, r->path);
		const json_t *entry = json_object_get(entries, name);
		AUTO_TEXT method = xstrdup(r->method);

		if (!entry)
			die("'operations' has no '%s'", name);
		for (char *c = method; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		if (!json_object_get(paths, r->path))
			json_object_set_new(paths, r->path, json_object());
		json_object_set_new(json_object_get(paths, r->path), method,
			make_operation(text, r, entry));
	}
	if (json_object_size(entries) != routes_count)
		die("'operations' has %zu entries, but there are %zu routes",
			json_object_size(entries), routes_count);
	return paths;
}

/* "description", or ["description", headers] */
static json_t *make_errors(const json_t *text)
{
	json_t *all = json_object(), *v;
	const char *name;

	json_object_foreach(json_object_get(text, "responses"), name, v) {
		json_t *o = json_pack("{s:O, s:{s:{s:o}}}", "description",
			json_is_array(v) ? json_array_get(v, 0) : v, "content", "application/json",
			"schema", expand_type("Error"));

		if (json_is_array(v))
			json_object_set_new(o, "headers", make_headers(json_array_get(v, 1)));
		json_object_set_new(all, name, o);
	}
	return all;
}

int main(int argc, char **argv)
{
	json_error_t problem;
	json_t *text, *api;

	if (argc != 2)
		die("usage: openapi_generate openapi_text.json >openapi.json");
	text = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &problem);
	if (!text)
		die("%s:%d: %s", argv[1], problem.line, problem.text);
	check_fields(text);
	api = json_pack("{s:O, s:O, s:O, s:o, s:{s:o, s:o}}", "openapi",
		json_object_get(text, "openapi"), "info", json_object_get(text, "info"), "servers",
		json_object_get(text, "servers"), "paths", make_paths(text), "components",
		"schemas", make_schemas(text), "responses", make_errors(text));
	if (!api)
		die("the text file must have 'openapi', 'info' and 'servers'");
	if (json_dumpf(api, stdout, JSON_INDENT(2)) < 0 || fputc('\n', stdout) == EOF ||
		fflush(stdout) != 0)
		die("could not write: %m");
	json_decref(api);
	json_decref(text);
	return 0;
}
