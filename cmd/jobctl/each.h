/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of a verb, one after the other. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct args;
struct ctl;
struct err;
struct ref;

/* Does it, and says so unless JSON is wanted. */
typedef bool each_fn(struct ctl *c, const struct ref *ref, void *arg, json_t **ret, struct err *e);

/* A failure is said and the rest goes on; the first exit code counts. */
int each_operand(struct ctl *c, const struct args *a, each_fn *fn, void *arg);
