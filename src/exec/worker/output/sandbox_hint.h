/* SPDX-License-Identifier: Apache-2.0 */
/* Why a command may have failed because of its sandbox profile: a set-user-ID program, or a refused system call. */
#pragma once
#include <sys/types.h>

#define SANDBOX_HINT_BYTES 512 /* of a command that are kept while it runs */

/* The beginning of a command as one text, for sandbox_hint_setuid(); the caller frees it. */
char *sandbox_hint_words(char *const argv[]);
/*
 * A hint for the error of a failed run: the first word that names a set-user-ID or set-group-ID
 * program, which gets no privileges under this profile. NULL: none. Only system directories are
 * searched. The caller frees it.
 */
char *sandbox_hint_setuid(const char *words, const char *profile);
/*
 * The same for a profile that refuses system calls. The filter does not report them, so the hint
 * depends on the signal of the command, or on the end of its output. NULL: none.
 */
char *sandbox_hint_refused_call(const char *output, size_t len, int term_signal, const char *profile);
