/* SPDX-License-Identifier: Apache-2.0 */
/* English lists and ordinals: "2, 5 and 9". */
#pragma once
#include "base/buf.h"
#include "base/text.h"

/* Items gathered one by one, then joined. */
struct word_list {
	struct strv items;
};
void word_list_done(struct word_list *l);
void word_list_add(struct word_list *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void word_list_join(const struct word_list *l, const char *last /* "and" */, struct buf *out);

/*
 * Adds "a", "b" or, for three and more in a row, "a to b", for every set bit; 'name' writes one
 * value.
 */
typedef void word_name_fn(int value, struct buf *out);
void word_list_bits(struct word_list *l, uint64_t bits, word_name_fn *name);

void word_list_number(int n, struct buf *out);  /* 5 */
void word_list_ordinal(int n, struct buf *out); /* 1st, 2nd, 23rd */
