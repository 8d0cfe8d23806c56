/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the lines of 'key = value' texts. */
#include "base/key_value.h"
#include <string.h>

#define BLANK " \t"

char *key_value_trim(char *s)
{
	char *end;

	s += strspn(s, BLANK);
	end = s + strlen(s);
	while (end > s && strchr(BLANK, end[-1]))
		*--end = '\0';
	return s;
}

enum key_value_line key_value_split(char *line, char **ret_key, char **ret_value)
{
	char *eq;

	*ret_key = line = key_value_trim(line);
	if (!*line || *line == '#')
		return KEY_VALUE_NONE;
	eq = *line == '[' ? NULL : strchr(line, '=');
	if (!eq)
		return KEY_VALUE_OTHER;
	*eq = '\0';
	*ret_key = key_value_trim(line);
	*ret_value = key_value_trim(eq + 1);
	return KEY_VALUE_PAIR;
}
