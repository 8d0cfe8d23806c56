/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the words of a command for programs with a set-ID bit, and the end of its output for errors of refused calls. */
#include "exec/worker/output/sandbox_hint.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WORDS_MAX 32 /* each takes a few microseconds, and only after a failure */
#define NAME_LEN 64
#define BETWEEN " \t\n;|&()<>`$\"'{}=!" /* separators of the words of a script */

/*
 * Directories of root. The spawner opens no path of a user, which could be a file system that does
 * not answer.
 */
static const char *const directories[] = {"/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"};

char *sandbox_hint_words(char *const argv[])
{
	AUTO_DONE(buf) b = {};

	for (; *argv && b.len < SANDBOX_HINT_BYTES; argv++) {
		buf_add(&b, *argv, strnlen(*argv, SANDBOX_HINT_BYTES - b.len));
		buf_char(&b, ' ');
	}
	return buf_steal(&b);
}

static bool file_is_setuid(const char *path, const char **ret_what)
{
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, AT_NO_AUTOMOUNT) < 0 || !S_ISREG(st.st_mode) ||
		!(st.st_mode & 0111))
		return false;
	*ret_what = st.st_mode & S_ISUID ? "set-user-ID" : "set-group-ID";
	return st.st_mode & (S_ISUID | S_ISGID);
}

/* A word without a slash is searched in all directories. A path must be a file in one of them. */
static bool word_is_setuid(const char *word, const char **ret_what)
{
	char path[NAME_LEN + 16];

	for (size_t i = 0; i < ELEMENTS(directories); i++) {
		const char *name =
			text_starts(word, directories[i]) ? word + strlen(directories[i]) : word;

		if ((name == word && word[0] == '/') || strchr(name, '/'))
			continue;
		snprintf(path, sizeof(path), "%s%s", directories[i], name);
		if (file_is_setuid(path, ret_what))
			return true;
	}
	return false;
}

char *sandbox_hint_setuid(const char *words, const char *profile)
{
	for (int n = 0; n < WORDS_MAX; n++) {
		size_t len;
		char word[NAME_LEN];
		const char *what;

		words += strspn(words, BETWEEN);
		len = strcspn(words, BETWEEN);
		if (!len)
			return NULL;
		snprintf(word, sizeof(word), "%.*s", (int)len, words);
		if (len < sizeof(word) && word[0] != '-' && word_is_setuid(word, &what))
			return xprintf(
				"'%s' is a %s program, which gets no privileges under the sandbox profile '%s'; if it needs them, "
				"use --sandbox compat",
				word, what, profile);
		words += len;
	}
	return NULL;
}

char *sandbox_hint_refused_call(const char *output, size_t len, int term_signal, const char *profile)
{
	static const int errors[] = {EPERM, ENOSYS, EAFNOSUPPORT}; /* of the filter, see sandbox_seccomp.c */

	if (term_signal == SIGSYS)
		return xprintf("the sandbox profile '%s' ends programs that use system calls of another architecture, such as "
			       "32-bit programs; if the command needs them, use --sandbox compat",
			profile);
	for (size_t i = 0; term_signal == 0 && i < ELEMENTS(errors); i++) {
		const char *text = strerrordesc_np(errors[i]);

		if (memmem(output, len, text, strlen(text)))
			return xprintf("the end of its output contains '%s', the error of system calls that the sandbox profile '%s' "
				       "refuses; if the command needs them, use --sandbox compat",
				text, profile);
	}
	return NULL;
}
