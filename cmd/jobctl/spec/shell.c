/* SPDX-License-Identifier: Apache-2.0 */
/* Quotes words for a shell; detects shell syntax. */
#include "jobctl/spec/shell.h"

#include "base/buf.h"
#include <string.h>

bool shell_syntax(const char *word)
{
	return word[strcspn(word, " \t\n|&;<>()$`\\\"'*?[]#~{}!")] != 0;
}

/* All characters are safe without quotes anywhere in a word. */
static bool is_plain_word(const char *word)
{
	return *word && word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					  "0123456789_./:,=@%+-")] == 0;
}

static bool printable(const char *word)
{
	for (; *word; word++)
		if ((unsigned char)*word < 0x20 || (unsigned char)*word >= 0x7f)
			return false;
	return true;
}

/* $'…' of bash, zsh, ksh and POSIX 2024 shows control characters as escape sequences. */
static void quote_bytes(struct buf *out, const char *word)
{
	buf_str(out, "$'");
	for (; *word; word++) {
		unsigned char c = (unsigned char)*word;

		if (c == '\'' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c == '\n')
			buf_str(out, "\\n");
		else if (c == '\t')
			buf_str(out, "\\t");
		else if (c < 0x20 || c >= 0x7f)
			buf_printf(out, "\\%03o", c);
		else
			buf_char(out, (char)c);
	}
	buf_char(out, '\'');
}

void shell_quote(struct buf *out, const char *word)
{
	if (is_plain_word(word)) {
		buf_str(out, word);
		return;
	}
	if (!printable(word)) {
		quote_bytes(out, word);
		return;
	}
	buf_char(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_str(out, "'\\''");
		else
			buf_char(out, *word);
	}
	buf_char(out, '\'');
}
