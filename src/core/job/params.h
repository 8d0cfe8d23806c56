/* SPDX-License-Identifier: Apache-2.0 */
/* Job parameters: {NAME} placeholders in the words of a command. A value never spans arguments. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;
struct job_spec;
struct strv;

/*
 * A parameter list has entries NAME=value, or NAME if a value must be given at the trigger. In a
 * job without parameters, braces have no meaning. In a job with parameters, {NAME} is replaced by
 * the value, {{ is a literal brace, and other braces are kept.
 */
#define PARAM_NAME_MAX 64
bool param_name_valid(const char *s, size_t len);
const char *param_value(const struct strv *params, const char *name, size_t len); /* borrowed; NULL: unknown, or without a value */

/*
 * Checks that every {NAME} in the command is declared and that none is in text that a
 * shell parses: a script, or the argument of 'sh -c'. ERR_INVALID with field "command" or "script".
 */
bool params_check(const struct job_spec *s, const struct strv *declared, struct err *e);

/*
 * The declared parameters with the given values, in the order of the declaration. An undeclared
 * name, or a parameter without a value, is refused with field "params" and a list of the declared
 * names. 'ret' must be empty.
 */
bool params_overlay(const struct strv *declared, const struct strv *given, struct strv *ret, struct err *e);

/* The same at the trigger of a run; also checks that the command fits the kernel's limits. */
bool params_of_run(const struct job_spec *s, const struct strv *given, struct strv *ret, struct err *e);

/* The same without checks, for a run that was queued before its job was changed. */
void params_merge(const struct strv *declared, const struct strv *given /* NULL: nothing */, struct strv *ret);

/* Appends the words with each {NAME} replaced; placeholders without a value are kept. */
void params_expand(const struct strv *words, const struct strv *params, struct strv *ret);
