/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a call: the member 'results' of a JSON object that its target sent. */
#pragma once
#include <jansson.h>
#include <stddef.h>

struct strv;

/*
 * Adds KEY=VALUE for each member of the object 'o': strings as they are, numbers and booleans as in JSON.
 * Other members are left out, and the first of these is described in *ret_note (owned; NULL: there is
 * none). The limits are those of core/job/result.h.
 */
void results_json_take(const json_t *o, struct strv *ret, char **ret_note);
/* The same for a whole response. A response that is not a JSON object with 'results' has none. */
void results_json_from_response(const char *text, size_t len, struct strv *ret, char **ret_note);
