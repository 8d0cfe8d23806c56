/* SPDX-License-Identifier: Apache-2.0 */
/* The time zone of whoever types. */
#pragma once

char *local_zone(void); /* IANA name; "UTC" when nothing says otherwise. Caller frees */

/* The name in what TZ, /etc/timezone or the target of /etc/localtime say; NULL: none. Caller frees. */
char *local_zone_parse(const char *text);
