/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as JSON: {"error":{"code","message","field"}}. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct err;

json_t *error_json_write(const struct err *e);
bool error_json_read(const json_t *o, struct err *e); /* sets *e; false: not an error object */
