/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserved disk space, released when the disk is full, so that the ends of runs can still be
 * recorded.
 */
#pragma once
#include <stdbool.h>

#define RESERVE_BYTES (16 << 20)

struct reserve {
	char *path; /* owned; NULL: no reserve is kept */
	bool held;
};
void reserve_init(struct reserve *r, const char *beside); /* the file BESIDE-reserve; held if it exists */
void reserve_done(struct reserve *r);                     /* keeps the file */
bool reserve_take(struct reserve *r);                     /* creates it if there is space; true: held, or none is kept */
void reserve_release(struct reserve *r);
