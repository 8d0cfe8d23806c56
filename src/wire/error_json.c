/* SPDX-License-Identifier: Apache-2.0 */
/* Error objects in JSON. */
#include "wire/error_json.h"
#include "base/err.h"
#include "wire/json_value.h"
#include <stdio.h>

json_t *error_json_write(const struct err *e)
{
	return json_pack("{s:{s:s, s:o, s:o}}", "error", "code", err_kind_info(e->kind)->code,
		"message", json_value_text(e->msg), "field",
		json_value_text(e->field[0] ? e->field : NULL));
}

bool error_json_read(const json_t *o, struct err *e)
{
	const json_t *inner = json_object_get(o, "error");
	const char *code = json_string_value(json_object_get(inner, "code"));
	const char *message = json_string_value(json_object_get(inner, "message"));
	const char *field = json_string_value(json_object_get(inner, "field"));

	if (!code || !message)
		return false;
	err_set(e, err_kind_from_code(code), "%s", message);
	if (field)
		snprintf(e->field, sizeof(e->field), "%s", field);
	return true;
}
