/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a job: {NAME} inside the words of its command, each value one whole piece of one argument. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;
struct job_spec;
struct strv;

/*
 * A list of parameters has NAME=value, or NAME alone where a value must still be given. In a job without
 * any, braces are what they are. With some, {NAME} stands for a value, {{ is a brace, and braces around
 * anything else than a name stay as they are.
 */
#define PARAM_NAME_MAX 64
bool param_name_valid(const char *s, size_t len);
const char *param_value(const struct strv *params, const char *name, size_t len); /* borrowed; NULL: none, or no value */

/*
 * Every {NAME} in the command is declared, and none stands where a shell would read it: in a script, or in the
 * text after 'sh -c'. ERR_INVALID with field "command" or "script".
 */
bool params_check(const struct job_spec *s, const struct strv *declared, struct err *e);

/*
 * What was given, laid over what is declared, in the order of the declaration. A name that is not declared, or one
 * left without a value, is refused with field "params", naming those there are. 'ret' is empty before.
 */
bool params_overlay(const struct strv *declared, const struct strv *given, struct strv *ret, struct err *e);

/* The same for a run of a job, that its command fits the kernel too; for the moment of a trigger. */
bool params_of_run(const struct job_spec *s, const struct strv *given, struct strv *ret, struct err *e);

/* The same without refusing anything: a run that was queued before its job was changed. */
void params_merge(const struct strv *declared, const struct strv *given /* NULL: nothing */, struct strv *ret);

/* Appends the words with each {NAME} replaced; one that has no value stays as it is. */
void params_expand(const struct strv *words, const struct strv *params, struct strv *ret);
