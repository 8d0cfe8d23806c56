/* SPDX-License-Identifier: Apache-2.0 */
/* Applies keys to the model of 'jobctl top'. */
#pragma once

struct buf;
struct top_model;

void top_keys_press(struct top_model *m, int key /* a character or enum top_key */);
void top_keys_help(struct buf *out);
