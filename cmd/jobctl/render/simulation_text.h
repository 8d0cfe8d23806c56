/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a simulation as text or JSON. */
#pragma once
#include <jansson.h>

struct buf;
struct ctl;
struct simulation;

/* One line per day, then the busiest minutes, overlaps, limits and clock changes. */
void simulation_text_table(const struct ctl *c, const struct simulation *m, struct buf *out);
/* One line per week with the runs of each day, then the same lists. */
void simulation_text_calendar(const struct ctl *c, const struct simulation *m, struct buf *out);
json_t *simulation_text_json(const struct simulation *m);
