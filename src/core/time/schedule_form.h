/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of a compiled schedule; private to the schedule files. */
#pragma once
#include "core/time/cron.h"
#include "core/time/interval.h"
#include "core/time/schedule.h"

enum schedule_form {
	FORM_NOW,
	FORM_ONCE,
	FORM_SERIES,       /* every, P…, R…/ */
	FORM_AFTER_FINISH,
	FORM_CRON,
	FORM_BOOT,
	FORM_MANUAL,
};

struct schedule {
	enum schedule_form form;
	const struct zone *zone;       /* borrowed; never NULL */
	int64_t anchor;                /* the submission in seconds, rounded up */
	int64_t start;                 /* the first second strictly after it */
	int64_t from, until;           /* seconds; the slots lie between, both included */
	union {
		int64_t once;
		struct {
			struct cron cron;
			struct cron_policy policy;
		};
		struct interval_series series; /* of FORM_AFTER_FINISH: the step */
	};
};
