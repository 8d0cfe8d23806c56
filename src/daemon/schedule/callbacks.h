/* SPDX-License-Identifier: Apache-2.0 */
/* The callback URLs of asynchronous calls. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>

struct callbacks;
struct err;

/*
 * 'url' is the base URL by which targets reach the API of this node. The key is read from the file
 * 'callback.key' in the state directory, which is made if it does not exist.
 */
bool callbacks_new(const char *url, const char *state_dir, struct callbacks **ret, struct err *e);
void callbacks_free(struct callbacks *c);
AUTO_DEFINE(callbacks);

/* The URL of one attempt; caller frees. It is valid while the attempt runs. */
char *callbacks_url(const struct callbacks *c, int64_t run, int64_t fence);
/* Reads the last component of such a URL. False: it was not made with this key. */
bool callbacks_parse(const struct callbacks *c, const char *text, int64_t *ret_run, int64_t *ret_fence);
