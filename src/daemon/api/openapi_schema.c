/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of openapi.json: the short forms of the text file, enumerations, and the fields of a job. */
#include "daemon/api/openapi_schema.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/notice.h"
#include "core/job/pause.h"
#include "core/job/run.h"
#include "core/job/token.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void openapi_die(const char *format, ...)
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

static const char *word_token_role(int i)
{
	return token_role_name((enum token_role)i);
}

static const char *word_token_kind(int i)
{
	return token_kind_name((enum token_kind)i);
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
	{"token_role", TOKEN_ROLE_MAX, word_token_role},
	{"token_kind", TOKEN_KIND_MAX, word_token_kind},
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
json_t *openapi_type(const char *text)
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
		openapi_die("a schema must be [\"TYPE\", \"description\"]");
	o = openapi_type(word);
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
		openapi_die("there is no enumeration '%s'", name);
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
		json_array_append_new(a, openapi_schema(v));
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
			json_object_set_new(o, key, openapi_schema(v));
		else if (strcmp(key, "type") == 0)
			json_object_update_new(o, openapi_type(json_string_value(v)));
		else if (strcmp(key, "members") != 0 && strcmp(key, "counts") != 0 &&
			 strcmp(key, "fields") != 0)
			json_object_set(o, key, v);
	}
	json_object_foreach(json_object_get(from, "members"), name, member)
		json_object_set_new(properties, name, openapi_schema(member));
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

json_t *openapi_schema(const json_t *v)
{
	if (json_is_string(v))
		return openapi_type(json_string_value(v));
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
	json_t *o = f->type == FIELD_CHOICE ? field_choices(f) : openapi_type("string");

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
		o = openapi_type(answer ? "number" : "duration");
		if (!answer)
			json_object_set_new(o, "default", json_integer(f->preset / USEC_SEC));
		return o;
	case FIELD_OCTAL:
	case FIELD_CHOICE:
		return field_word(f, answer);
	case FIELD_TIME:
	case FIELD_BLOB:
		return openapi_type(answer ? "string?" : "string");
	default:
		o = openapi_type(answer ? "string?" : "string");
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
void openapi_schema_fields(const json_t *text, bool answer, json_t *properties)
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

void openapi_schema_check(const json_t *text)
{
	const char *name;
	json_t *v;

	json_object_foreach(json_object_get(text, "fields"), name, v)
		if (!job_field_find(name))
			openapi_die("'fields' has '%s', which is no field of a job", name);
}

json_t *openapi_schema_all(const json_t *text)
{
	json_t *all = json_object(), *v;
	const char *name;

	json_object_foreach(json_object_get(text, "schemas"), name, v) {
		const char *fields =
			json_is_object(v) ? json_string_value(json_object_get(v, "fields")) : NULL;
		json_t *o = openapi_schema(v);

		if (fields)
			openapi_schema_fields(text, strcmp(fields, "answer") == 0,
				json_object_get(o, "properties"));
		json_object_set_new(all, name, o);
	}
	return all;
}
