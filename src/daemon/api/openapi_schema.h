/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of openapi_generate: schemas in their short form, see openapi_generate.c. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

/* Prints the message and exits: the build fails. */
void openapi_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

json_t *openapi_type(const char *text);      /* "TYPE" */
json_t *openapi_schema(const json_t *v);     /* any of the short forms */
void openapi_schema_fields(const json_t *text, bool answer, json_t *properties); /* adds the fields of a job */
void openapi_schema_check(const json_t *text); /* every entry of 'fields' is a field of a job */
json_t *openapi_schema_all(const json_t *text);
