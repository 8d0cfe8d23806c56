/* SPDX-License-Identifier: Apache-2.0 */
/* A file that holds space back, so that ends can still be recorded when the disk is full (F-06). */
#pragma once
#include <stdbool.h>

#define RESERVE_BYTES (16 << 20)

struct reserve {
	char *path; /* owned; NULL: no reserve is kept */
	bool held;
};
void reserve_init(struct reserve *r, const char *beside); /* BESIDE-reserve; held when it is there already */
void reserve_done(struct reserve *r);                     /* the file stays */
bool reserve_take(struct reserve *r);                     /* makes it if there is space; true: held, or none is kept */
void reserve_release(struct reserve *r);
