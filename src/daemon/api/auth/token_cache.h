/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of the store in memory, so that a request is authenticated without a read. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct sd_event;
struct store_thread;
struct token_cache;
struct token_row;
struct token_text;

/* Reads the tokens now, and again when another node has changed them (within two seconds). */
bool token_cache_new(struct sd_event *ev, struct store_thread *store, struct token_cache **ret,
	struct err *e);
void token_cache_free(struct token_cache *c);
AUTO_DEFINE(token_cache);

/*
 * The row of a valid token; NULL: unknown, expired, or another secret. Borrowed: valid until the
 * loop continues.
 */
const struct token_row *token_cache_find(const struct token_cache *c, const struct token_text *t,
	usec_t now);
/* A row that this node has added, or an id that it has removed (with its sessions). */
void token_cache_put(struct token_cache *c, const struct token_row *row);
void token_cache_remove(struct token_cache *c, const char *id);
bool token_cache_has(const struct token_cache *c, const char *id);
bool token_cache_is_empty(const struct token_cache *c); /* no tokens, or not read yet */
