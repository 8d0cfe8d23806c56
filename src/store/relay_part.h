/* SPDX-License-Identifier: Apache-2.0 */
/* One part of a run's output on its way from one node to another. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define RELAYS_MAX 64  /* that one node reads, and that one node serves */
#define RELAY_WINDOW 2 /* parts of a relay that may wait to be read */

struct relay_part {
	int64_t number;         /* from 1 on */
	int64_t at;             /* offset of its first byte in the output */
	int64_t total, dropped; /* bytes of the output when the part was read */
	bool last;
	char *note;             /* owned: why there is no data; NULL: there is */
	char *data;             /* owned: base64 */
};
void relay_part_done(struct relay_part *p);
