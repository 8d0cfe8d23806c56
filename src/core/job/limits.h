/* SPDX-License-Identifier: Apache-2.0 */
/* What a job may use: the texts people write, and what they mean to the kernel. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct job_spec;

/* Those that need something of the machine. */
enum limit_kind { LIMIT_MEMORY = 1, LIMIT_CPU = 2, LIMIT_PIDS = 4, LIMIT_ALL = 7 };
const char *limit_kind_words(unsigned kinds); /* of the first of them: "memory" … */

#define LIMIT_MEMORY_MIN (INT64_C(1) << 20)
#define LIMIT_MEMORY_MAX (INT64_C(1) << 50)
#define LIMIT_CPU_MAX 1000000 /* percent */
#define LIMIT_PIDS_MAX (1 << 22)
#define LIMIT_NICE_MAX 19

bool limit_cpu_parse(const char *text, int64_t *ret, struct err *e); /* 50% 150% 1.5 2: percent of one processor */

/* best-effort[:0-7] (0 is the first to be served), idle; 0 is none of them. */
#define LIMIT_IONICE_IDLE 9
bool limit_ionice_parse(const char *text, int64_t *ret, struct err *e); /* 1 to 8: best effort 0 to 7 */

#define LIMIT_UNLIMITED INT64_C(-1)
/* NAME=VALUE as nofile=1024, fsize=10M, core=unlimited. */
bool limit_resource_parse(const char *pair, int *ret_resource, int64_t *ret_value, struct err *e);
char *limit_resource_print(const char *pair); /* in one way only: fsize=10485760; caller frees; NULL: not valid */
bool limit_resource_plain(const char *pair);  /* whether it is written so */
const char *limit_resource_name(int resource);

/* Whether a job asks for what cannot be had: 'missing' are enum limit_kind. */
bool limits_check(const struct job_spec *s, unsigned missing, struct err *e);
