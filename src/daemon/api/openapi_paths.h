/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of openapi_generate: the operations of the route table. */
#pragma once
#include <jansson.h>

json_t *openapi_paths(const json_t *text);
json_t *openapi_paths_errors(const json_t *text); /* the shared responses of refused requests */
