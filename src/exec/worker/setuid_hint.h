/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the set-user-ID or set-group-ID program that a failed command names. */
#pragma once
#include <sys/types.h>

#define SETUID_HINT_BYTES 512 /* of a command, kept while it runs */

/* The start of a command's words as one text, for setuid_hint() when it has failed; the caller frees it. */
char *setuid_hint_words(char *const argv[]);
/*
 * The reason to add to a failure: the first word that is the name or the path of a set-user-ID or set-group-ID program of the system,
 * which gets no privileges under this profile. NULL: there is none. Looks only into directories that belong to the system.
 */
char *setuid_hint(const char *words, const char *profile);
