/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal of 'jobctl top': draws the model, reads keys. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct err;
struct top_model;
struct top_screen;

/* ERR_INVALID: the type of the terminal is not known. */
bool top_screen_open(bool colour, struct top_screen **ret, struct err *e);
void top_screen_free(struct top_screen *s); /* restores the terminal */
AUTO_DEFINE(top_screen);

void top_screen_size(struct top_screen *s, int *ret_lines, int *ret_columns); /* reads it again */
void top_screen_draw(struct top_screen *s, const struct top_model *m);
void top_screen_suspend(struct top_screen *s); /* restores the terminal until the next call */
void top_screen_resume(struct top_screen *s);
bool top_screen_key(struct top_screen *s, int *ret); /* a character or enum top_key; false: none */
