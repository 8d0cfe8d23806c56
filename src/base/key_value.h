/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the lines of 'key = value' texts. */
#pragma once

/*
 * spawner.conf and the text of 'jobctl edit' are read with this function. The spawner parses
 * spawner.conf as root, so the line is changed in place: no allocation, no file, no limit to
 * exceed. jobschedd.conf is read with inih.
 */
enum key_value_line {
	KEY_VALUE_NONE,  /* an empty line or a comment, which begins with '#' */
	KEY_VALUE_PAIR,
	KEY_VALUE_OTHER, /* without '=', or with '[' as its first character, as a section has */
};
/*
 * Removes blanks around the key and the value, and writes NUL bytes behind them. *ret_key is the
 * whole line if it is not a pair.
 */
enum key_value_line key_value_split(char *line, char **ret_key, char **ret_value);

char *key_value_trim(char *s); /* the text without blanks at both ends; its end is cut in place */
