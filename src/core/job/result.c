/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the results that the command of a run wrote. */
#include "core/job/result.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

static bool key_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

bool result_key_valid(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!key_char(key[i], i == 0))
			return false;
	return len > 0 && len <= RESULT_KEY_MAX;
}

static bool value_plain(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return false;
	return text_utf8_valid(value, len);
}

/* Why a line is not a result; NULL: it is one. */
static const char *line_fault(const char *line, size_t len)
{
	const char *eq = memchr(line, '=', len);
	size_t value;

	if (!eq)
		return "has no '='";
	if (!result_key_valid(line, (size_t)(eq - line)))
		return "has a key that is not a letter or '_' followed by at most 47 letters, digits and '_'";
	value = len - (size_t)(eq + 1 - line);
	if (value > RESULT_VALUE_MAX)
		return "has a value of more than 1024 bytes";
	return value_plain(eq + 1, value) ? NULL : "has a value that is not UTF-8 or has control characters";
}

/* A line with the key of an earlier one replaces it. False: there are too many keys. */
static bool line_add(struct strv *to, const char *line, size_t len)
{
	size_t key = (size_t)((const char *)memchr(line, '=', len) + 1 - line);

	for (size_t i = 0; i < to->n; i++)
		if (strncmp(to->v[i], line, key) == 0) {
			free(to->v[i]);
			to->v[i] = xstrndup(line, len);
			return true;
		}
	if (to->n == RESULTS_MAX)
		return false;
	strv_take(to, xstrndup(line, len));
	return true;
}

void results_parse(const char *text, size_t len, struct strv *ret, char **ret_note)
{
	size_t number = 0, bad = 0;

	*ret_note = NULL;
	while (len > 0) {
		const char *end = memchr(text, '\n', len), *fault = NULL;
		size_t line = end ? (size_t)(end - text) : len;

		number++;
		if (line > 0) {
			fault = line_fault(text, line);
			if (!fault && !line_add(ret, text, line))
				fault = "is the 33rd key; a run has at most 32 results";
		}
		if (fault && bad++ == 0)
			*ret_note = xprintf("line %zu of its results %s; such lines are left out", number, fault);
		text += line + (end != NULL);
		len -= line + (end != NULL);
	}
}
