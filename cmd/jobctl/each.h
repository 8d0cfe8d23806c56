/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a function to each operand of a verb. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct args;
struct ctl;
struct err;
struct ref;

/*
 * Processes one operand. Prints a message unless JSON is selected. *ret: the object for JSON
 * output.
 */
typedef bool each_fn(struct ctl *c, const struct ref *ref, void *arg, json_t **ret, struct err *e);

/* Continues after a failure. Returns the exit code of the first failure. */
int each_operand(struct ctl *c, const struct args *a, each_fn *fn, void *arg);
