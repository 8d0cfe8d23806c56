/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of calls that invoke AWS Lambda functions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;

#define LAMBDA_TARGET_MAX 193 /* FUNCTION:QUALIFIER */
#define LAMBDA_REGION_MAX 32

/* Checks of the fields. They set *e with the field. */
bool lambda_target_check(const char *text, struct err *e); /* FUNCTION[:QUALIFIER] */
bool lambda_region_check(const char *text, struct err *e);

/* The qualifier of a valid target, and the length of the name of its function. NULL: it has none. */
const char *lambda_target_qualifier(const char *target, size_t *ret_name);

/* lambda-functions: [USER:]PATTERN, separated by commas or blanks. */
bool lambda_functions_check(const char *list, struct err *e);
/* Whether the list allows this user to invoke the function of a valid target. NULL: an empty list. */
bool lambda_functions_allow(const char *list, const char *user, const char *target);
