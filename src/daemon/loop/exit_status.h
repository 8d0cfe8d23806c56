/* SPDX-License-Identifier: Apache-2.0 */
/* Exit statuses of jobschedd, which tell a service manager what to do (sysexits.h). */
#pragma once

#define EXIT_NO_INPUT 66
#define EXIT_OTHER_RUNS 69  /* another daemon uses the store */
#define EXIT_TRY_AGAIN 75
#define EXIT_NOT_ALLOWED 77
#define EXIT_CONFIG 78      /* a restart does not help */
