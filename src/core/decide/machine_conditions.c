/* SPDX-License-Identifier: Apache-2.0 */
/* Parses load and pressure figures and evaluates 'when' conditions. */
#include "core/decide/machine_conditions.h"
#include "base/err.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

/* "12.34" in thousandths; -1: not a number, or 1000000 or more. */
static int64_t thousandths_at(const char *text)
{
	char *end;
	double n;

	if (*text < '0' || *text > '9')
		return -1;
	n = strtod(text, &end);
	return end != text && n < 1e6 ? (int64_t)(n * 1000 + 0.5) : -1;
}

int64_t machine_conditions_parse_pressure(const char *text)
{
	static const char before[] = "some avg10=";

	return text_starts(text, before) ? thousandths_at(text + strlen(before)) : -1;
}

int64_t machine_conditions_parse_load(const char *text)
{
	return thousandths_at(text);
}

bool machine_conditions_hold(const struct machine_figures *m, const struct strv *when)
{
	for (size_t i = 0; i < when->n; i++) {
		struct err e = {};
		struct gate g;

		if (!policy_condition_parse(when->v[i], &g, &e) || m->thousandths[g.figure] < 0 ||
		    m->thousandths[g.figure] >= g.below)
			return false;
	}
	return true;
}

bool machine_conditions_known(const struct machine_figures *m, const struct strv *when)
{
	for (size_t i = 0; i < when->n; i++) {
		struct err e = {};
		struct gate g;

		if (policy_condition_parse(when->v[i], &g, &e) && m->thousandths[g.figure] < 0)
			return false;
	}
	return true;
}
