/* SPDX-License-Identifier: Apache-2.0 */
/* Revisions of a job's definition as they are stored. */
#pragma once
#include "base/clock.h"
#include <stdint.h>

#define REVISIONS_KEPT 100 /* of a job */

struct revision {
	int64_t number;
	int64_t uid;        /* of the user who made it */
	char *who;          /* name of this user; NULL: unknown */
	usec_t at;
	char *what;         /* description of the change */
	int64_t origin;     /* the revision that it restored; 0: none */
	char *spec;         /* JSON */
};
