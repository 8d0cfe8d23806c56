/* SPDX-License-Identifier: Apache-2.0 */
/* Events that ascending readers do not get yet, because an older transaction of the server is open. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct store;

bool events_held_since(struct store *s, usec_t *ret /* when the first of them was written; 0: there are none */, struct err *e);
bool events_held_by(struct store *s, char **ret /* owned; the oldest transaction that writes; NULL: none */, struct err *e);
