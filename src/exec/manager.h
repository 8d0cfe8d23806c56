/* SPDX-License-Identifier: Apache-2.0 */
/* What the service manager is told, where there is one. */
#pragma once

void manager_tell(const char *words); /* "READY=1" … */
void manager_tell_reloading(void);
