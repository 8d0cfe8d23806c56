/* SPDX-License-Identifier: Apache-2.0 */
/* Warrants: approval of an exact execution specification by root or the owner. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;

#define WARRANT_LEN 32
#define WARRANT_JOB_LEN 16 /* the identity of the job, see struct exec_spec */
#define WARRANT_TEXT (2 * (WARRANT_JOB_LEN + WARRANT_LEN))
#define WARRANT_TEXT_FIRST (2 * WARRANT_LEN) /* digits of the first version, which covers neither identity nor name */
#define WARRANT_HEX (WARRANT_TEXT + 1)

/* Which jobs need a warrant; set in spawner.conf. */
enum warrant_policy {
	WARRANT_NONE, /* none */
	WARRANT_ROOT, /* jobs of uid 0 */
	WARRANT_ALL,  /* all jobs */
	WARRANT_POLICY_MAX
};
bool warrant_needed(enum warrant_policy p, int64_t uid);

/*
 * The text form in the job's definition: the identity of the job and the warrant, 96 lower-case
 * hexadecimal digits. A warrant of the first version has 64 digits and covers neither identity nor
 * name.
 */
bool warrant_parse(const char *text, unsigned char ret[WARRANT_LEN]);
bool warrant_job(const char *text /* NULL: none */, unsigned char ret[WARRANT_JOB_LEN]); /* false: none, or of the first version */
char *warrant_print(const unsigned char job[WARRANT_JOB_LEN] /* NULL: a template's */, const unsigned char warrant[WARRANT_LEN],
	char out[WARRANT_HEX]);
