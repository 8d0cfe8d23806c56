/* SPDX-License-Identifier: Apache-2.0 */
/* Holds conditions against the figures of the machine. */
#include "core/machine.h"
#include "base/err.h"
#include "base/text.h"

bool machine_allows(const struct machine_now *m, const struct strv *when)
{
	for (size_t i = 0; i < when->n; i++) {
		struct err e = {};
		struct gate g;

		if (!gate_parse(when->v[i], &g, &e) || m->thousandths[g.figure] < 0 ||
		    m->thousandths[g.figure] >= g.below)
			return false;
	}
	return true;
}
