/* SPDX-License-Identifier: Apache-2.0 */
/* Sandbox profiles: what is taken from a job, as data and in words. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

#define SANDBOX_NAME_MAX 64
#define SANDBOX_PATHS_MAX 32
#define SANDBOX_PRESET "standard" /* of a job that names none */

/* What a profile is made of; the value of each is one of its words, and 0 always means that nothing is done. */
enum sandbox_part {
	SANDBOX_PRIVILEGES, /* no_new_privs */
	SANDBOX_CALLS,
	SANDBOX_LANDLOCK,
	SANDBOX_SYSTEM,
	SANDBOX_TMP,
	SANDBOX_DEV,
	SANDBOX_RUN,
	SANDBOX_PIDS,
	SANDBOX_IPC,
	SANDBOX_NETWORK,
	SANDBOX_PART_MAX
};
enum { CALLS_ALL, CALLS_STANDARD, CALLS_STRICT, CALLS_MAX };
enum { LANDLOCK_NONE, LANDLOCK_PROCESSES, LANDLOCK_PATHS };
enum { NETWORK_HOST, NETWORK_NONE, NETWORK_LOOPBACK };

#define SANDBOX_CAPABILITIES 41                                    /* how many we know by name */
#define SANDBOX_CAPS_ALL ((UINT64_C(1) << SANDBOX_CAPABILITIES) - 1)

struct sandbox {
	char *name;
	uint8_t part[SANDBOX_PART_MAX];
	uint64_t capabilities;      /* what a job of root keeps; SANDBOX_CAPS_ALL: nothing is taken, not even new ones */
	struct strv read_write;     /* absolute, or beginning with %h, the owner's home */
	bool unavailable;           /* the site lets nobody have it */
};
void sandbox_done(struct sandbox *s);
void sandbox_profile_copy(struct sandbox *to, const struct sandbox *from);

/* A list of profiles; it begins with ours. */
struct sandbox_profiles {
	struct sandbox *v;
	size_t n;
};
void sandbox_profiles_init(struct sandbox_profiles *l); /* compat, standard, strict */
void sandbox_profiles_done(struct sandbox_profiles *l);
struct sandbox *sandbox_profiles_find(const struct sandbox_profiles *l, const char *name); /* NULL: none */
/* A section of the configuration: a new profile like 'strict' until 'base' says otherwise, or one of ours anew. */
bool sandbox_profiles_add(struct sandbox_profiles *l, const char *name, struct sandbox **ret, struct err *e);
/* A key of that section. 'base' comes first. */
bool sandbox_profiles_set(struct sandbox_profiles *l, struct sandbox *s, const char *key, const char *value, struct err *e);
bool sandbox_profile_check(const struct sandbox *s, struct err *e); /* whether its parts go together */

const char *sandbox_profile_part_key(enum sandbox_part p);   /* as in the configuration: "private-tmp" */
const char *sandbox_profile_part_word(const struct sandbox *s, enum sandbox_part p); /* its value there: "yes" */
void sandbox_profile_capability_names(uint64_t mask, struct buf *out); /* "chown, kill" */
void sandbox_profile_words(const struct sandbox *s, struct buf *out); /* a line for each thing that will apply */
bool sandbox_profile_name_check(const char *name, struct err *e);
