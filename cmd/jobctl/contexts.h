/* SPDX-License-Identifier: Apache-2.0 */
/* The file of contexts: names for daemons over TCP. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct err;

/*
 * {"current": NAME or null, "contexts": {NAME: {"url", "token_file", "ca_file"}}}. A missing file
 * gives an empty object of this form.
 */
bool contexts_read(json_t **ret, struct err *e);
bool contexts_write(const json_t *all, struct err *e);
/* The members of one context; borrowed. ERR_NOT_FOUND: there is none of this name. */
bool contexts_find(const json_t *all, const char *name, const json_t **ret, struct err *e);

/* Reads a token from a file that only its owner can read. The caller frees it. */
bool contexts_read_token(const char *file, char **ret, struct err *e);
