/* SPDX-License-Identifier: Apache-2.0 */
/* What only the SQLite engine promises. */
#include "store_suite.h"
static const struct CMUnitTest tests[] = {};
const struct suite_part store_server_part = {tests, 0};
