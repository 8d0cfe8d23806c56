/* SPDX-License-Identifier: Apache-2.0 */
/* Generates openapi.json from the tables of the daemon, with the texts of openapi_text.json. */
#include "base/auto.h"
#include "base/text.h"
#include "core/job/job_fields.h"
#include "daemon/api/openapi_paths.h"
#include "daemon/api/openapi_schema.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/*
 * usage: openapi_generate openapi_text.json >openapi.json
 *        openapi_generate --definitions openapi_text.json >definitions.schema.json
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

/* ---- definitions in files ---- */

/* A null keeps the stored value, so that a file need not contain secrets. */
static void allow_null_values(json_t *properties, const char *name)
{
	json_t *values = json_object_get(json_object_get(properties, name), "additionalProperties");

	json_object_set_new(values, "type", json_pack("[s, s]", "string", "null"));
}

static json_t *make_definition(const json_t *text)
{
	json_t *properties = json_object();

	openapi_schema_fields(text, false, properties);
	for (size_t i = 0; i < job_fields_count; i++) {
		AUTO_TEXT b64 = xprintf("%s_b64", job_fields[i].name);

		if (!job_fields[i].quiet) /* the others belong to a submission: warrant, origin, trace */
			continue;
		json_object_del(properties, job_fields[i].name);
		json_object_del(properties, b64);
	}
	allow_null_values(properties, "env");
	allow_null_values(properties, "params");
	return json_pack("{s:s, s:[s], s:o, s:b}", "type", "object", "required", "name",
		"properties", properties, "additionalProperties", 0);
}

static json_t *make_definitions(const json_t *text)
{
	static const char item[] = "#/$defs/definition";

	return json_pack("{s:s, s:s, s:s, s:[{s:s}, {s:s}, {s:s, s:{s:s}}], s:{s:o, s:o}}",
		"$schema", "https://json-schema.org/draft/2020-12/schema", "title",
		"jobsched definitions", "description",
		"A file for 'jobctl apply' and 'jobctl diff': a set, one definition or a list of "
		"definitions. Each line of a .jsonl file is a definition.",
		"oneOf", "$ref", "#/$defs/set", "$ref", item, "type", "array", "items", "$ref", item,
		"$defs", "definition", make_definition(text), "set",
		json_pack("{s:s, s:[s], s:{s:{s:s}, s:{s:s, s:i, s:i, s:s}, s:{s:s, s:{s:s}}}, s:b}",
			"type", "object", "required", "jobs", "properties", "$schema", "type",
			"string", "set", "type", "string", "minLength", 1, "maxLength", 1024,
			"description", "name of the set; the path of the file or directory by default",
			"jobs", "type", "array", "items", "$ref", item, "additionalProperties", 0));
}

static json_t *make_api(const json_t *text)
{
	json_t *api = json_pack("{s:O, s:O, s:O, s:o, s:{s:o, s:o}}", "openapi",
		json_object_get(text, "openapi"), "info", json_object_get(text, "info"), "servers",
		json_object_get(text, "servers"), "paths", openapi_paths(text), "components",
		"schemas", openapi_schema_all(text), "responses", openapi_paths_errors(text));

	if (!api)
		openapi_die("the text file must have 'openapi', 'info' and 'servers'");
	return api;
}

int main(int argc, char **argv)
{
	bool definitions = argc == 3 && strcmp(argv[1], "--definitions") == 0;
	json_error_t problem;
	json_t *text, *api;

	if (argc != 2 && !definitions)
		openapi_die("usage: openapi_generate [--definitions] openapi_text.json");
	text = json_load_file(argv[argc - 1], JSON_REJECT_DUPLICATES, &problem);
	if (!text)
		openapi_die("%s:%d: %s", argv[argc - 1], problem.line, problem.text);
	openapi_schema_check(text);
	api = definitions ? make_definitions(text) : make_api(text);
	if (!api)
		openapi_die("could not make the document");
	if (json_dumpf(api, stdout, JSON_INDENT(2)) < 0 || fputc('\n', stdout) == EOF ||
		fflush(stdout) != 0)
		openapi_die("could not write: %m");
	json_decref(api);
	json_decref(text);
	return 0;
}
