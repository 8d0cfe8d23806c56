/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits of a job: parsing and kernel values. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct job_spec;

/* Limits that need a cgroup controller. */
enum limit_kind { LIMIT_MEMORY = 1, LIMIT_CPU = 2, LIMIT_PIDS = 4, LIMIT_ALL = 7 };
const char *limit_kind_words(unsigned kinds); /* of the first kind in the set: "memory" … */

#define LIMIT_MEMORY_MIN (INT64_C(1) << 20)
#define LIMIT_MEMORY_MAX (INT64_C(1) << 50)
#define LIMIT_CPU_MAX 1000000 /* percent */
#define LIMIT_PIDS_MAX (1 << 22)
#define LIMIT_NICE_MAX 19

bool limit_cpu_parse(const char *text, int64_t *ret, struct err *e); /* 50% 150% 1.5 2; the result is percent of one CPU */

/* best-effort[:0-7] (0 is the highest priority) or idle. */
#define LIMIT_IONICE_IDLE 9
bool limit_ionice_parse(const char *text, int64_t *ret, struct err *e); /* 1 to 8: best-effort 0 to 7; LIMIT_IONICE_IDLE */

#define LIMIT_UNLIMITED INT64_C(-1)
/* NAME=VALUE as nofile=1024, fsize=10M, core=unlimited. */
bool limit_resource_parse(const char *pair, int *ret_resource, int64_t *ret_value, struct err *e);
char *limit_resource_print(const char *pair); /* canonical form: fsize=10485760; caller frees; NULL: invalid */
bool limit_resource_plain(const char *pair);  /* whether it is in canonical form */
const char *limit_resource_name(int resource);

/* Refuses a job with limits that are not available; 'missing' are bits of enum limit_kind. */
bool limits_check(const struct job_spec *s, unsigned missing, struct err *e);
