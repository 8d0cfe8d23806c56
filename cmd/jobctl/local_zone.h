/* SPDX-License-Identifier: Apache-2.0 */
/* The time zone of whoever types. */
#pragma once

char *zone_here(void); /* IANA name; "UTC" when nothing says otherwise. Caller frees */

/* The name in what TZ, /etc/timezone or the target of /etc/localtime say; NULL: none. Caller frees. */
char *zone_name_in(const char *text);
