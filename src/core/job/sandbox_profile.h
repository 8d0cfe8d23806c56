/* SPDX-License-Identifier: Apache-2.0 */
/* Sandbox profiles as data and as English descriptions. */
#pragma once
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

#define SANDBOX_NAME_MAX 64
#define SANDBOX_PATHS_MAX 32
#define SANDBOX_PRESET "standard" /* default profile */

/* The settings of a profile. The value 0 means that the setting has no effect. */
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

#define SANDBOX_CAPABILITIES 41                                    /* number of capabilities with a known name */
#define SANDBOX_CAPS_ALL ((UINT64_C(1) << SANDBOX_CAPABILITIES) - 1)

struct sandbox {
	char *name;
	uint8_t part[SANDBOX_PART_MAX];
	uint64_t capabilities;      /* kept by jobs of root; SANDBOX_CAPS_ALL: all, including unknown ones */
	struct strv read_write;     /* absolute paths; %h at the start is the owner's home */
	bool unavailable;           /* disabled by the site */
};
void sandbox_done(struct sandbox *s);
void sandbox_profile_copy(struct sandbox *to, const struct sandbox *from);

/* All profiles; the built-in ones come first. */
struct sandbox_profiles {
	struct sandbox *v;
	size_t n;
};
void sandbox_profiles_init(struct sandbox_profiles *l); /* compat, standard, strict */
void sandbox_profiles_done(struct sandbox_profiles *l);
struct sandbox *sandbox_profiles_find(const struct sandbox_profiles *l, const char *name); /* NULL: none */
/*
 * Starts a section of the configuration: a new profile, copied from 'strict' unless 'base' is
 * given, or a changed built-in one.
 */
bool sandbox_profiles_add(struct sandbox_profiles *l, const char *name, struct sandbox **ret, struct err *e);
/* Sets a key of the section. 'base' must be the first one. */
bool sandbox_profiles_set(struct sandbox_profiles *l, struct sandbox *s, const char *key, const char *value, struct err *e);
bool sandbox_profile_check(const struct sandbox *s, struct err *e); /* whether its settings are compatible */

const char *sandbox_profile_part_key(enum sandbox_part p);   /* the key in the configuration: "private-tmp" */
const char *sandbox_profile_part_word(const struct sandbox *s, enum sandbox_part p); /* the value in the configuration: "yes" */
void sandbox_profile_capability_names(uint64_t mask, struct buf *out); /* "chown, kill" */
void sandbox_profile_words(const struct sandbox *s, struct buf *out); /* one line for each effect */
bool sandbox_profile_name_check(const char *name, struct err *e);
