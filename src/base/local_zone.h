/* SPDX-License-Identifier: Apache-2.0 */
/* Time zone of the invoking user. */
#pragma once

char *local_zone(void); /* IANA name; "UTC" if none is found. Caller frees */

/*
 * Extracts the name from $TZ, the text of /etc/timezone or the link /etc/localtime; NULL: none.
 * Caller frees.
 */
char *local_zone_parse(const char *text);
